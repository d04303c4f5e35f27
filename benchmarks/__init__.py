"""How fast this is, beside what would be picked instead: `python -m benchmarks --help`."""
