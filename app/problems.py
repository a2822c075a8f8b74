"""The one table that says how each thing that can go wrong is told to a caller.

Loaded when something has gone wrong, so that the good path does not pay for the texts.
"""

from __future__ import annotations

#: slug -> (HTTP status, title, what it means and what to do)
PROBLEMS = {
    "malformed-request": (
        400,
        "Malformed request.",
        "The request could not be read: the body is not one JSON object in UTF-8, a member or parameter appears twice, "
        "or fewer bytes arrived than were announced. Correct the request; sending it again unchanged will not help.",
    ),
    "unauthorized": (
        401,
        "API key required.",
        "This service asks for an API key and the request had none that is known here.",
    ),
    "forbidden": (
        403,
        "Owner mismatch.",
        "The lock exists and another owner holds it. Only the owner that acquired it can renew or release it. "
        "If you were the holder, your lease has ended and somebody else has it now: stop the work it protected.",
    ),
    "not-found": (
        404,
        "Lock not found.",
        "There is no live lease of that name, or no such address. An expired lease belongs to nobody: acquire it anew.",
    ),
    "method-not-allowed": (
        405,
        "Method not allowed.",
        "The address exists but does not answer this method. The Allow header lists the methods it does answer.",
    ),
    "length-required": (
        411,
        "Length required.",
        "The body came without a Content-Length and this server cannot see where it ends. Send the length.",
    ),
    "too-large": (
        413,
        "Body too large.",
        "A body may have up to 65,536 bytes.",
    ),
    "unsupported-media-type": (
        415,
        "Unsupported media type.",
        "Bodies are JSON. Send the header 'Content-Type: application/json'; HTML form types are refused.",
    ),
    "validation-failed": (
        422,
        "Validation failed.",
        "The request was read, but a value in it is not acceptable. The member 'errors' lists every fault. "
        "Nothing was changed.",
    ),
    "too-many-requests": (
        429,
        "Too many requests.",
        "The quota for this kind of request is used up. Wait for the number of seconds in the Retry-After header.",
    ),
    "internal-error": (
        500,
        "Internal error.",
        "The service made a mistake. The reason is in the error log of the web server. A retry is safe.",
    ),
    "unavailable": (
        503,
        "Service unavailable.",
        "The service cannot answer now; the member 'detail' says why. Nothing was half done, and a retry is safe.",
    ),
    "capacity": (
        503,
        "Capacity reached.",
        "As many leases are live as this service allows (the setting MAX_LOCKS). Release some or wait for them to end.",
    ),
}

#: why the lock store cannot work -> what a caller is told; one log line names the reason
STORE_FAULTS = {
    "busy": "The lock database is in use by other requests and did not become free in time. Try again.",
    "full": "The disk or the quota that holds the lock database is full. The operator has to free space.",
    "read-only": "The lock database cannot be written: it or its folder is read-only for the user this runs as.",
    "corrupt": "The lock database is damaged. The operator has to restore it, or to start with an empty one, which "
    "frees every lock: delete the database and the file locks.created in the folder var.",
    "missing": "The lock database is gone where there has been one. An empty one would free every lock, so the "
    "operator has to put it back or accept a new one: delete locks.created in the folder var "
    "(python3 tools/doctor.py --accept-new-database does it in a shell).",
    "unreadable": "The lock database cannot be opened: check that the folder var/ exists and belongs to the user this "
    "runs as.",
    "not-owner": "The folder var/ belongs to another user than the one this runs as. Where the host runs scripts as a "
    "user of its own, give that user the right to write into var/, or ask the host for suEXEC.",
    "failing": "The disk refused to read or write the lock database (a used-up quota looks like this too).",
}
