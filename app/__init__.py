"""Kannuki: leases on named resources, for people whose only server is a rented one."""

__version__ = "0.1.0"
