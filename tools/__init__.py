"""Commands for people: each file is started as `python3 tools/NAME.py`."""
