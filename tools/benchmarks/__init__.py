"""What `tools/bench.py` measures, one module a section, and what the sections have in common."""
