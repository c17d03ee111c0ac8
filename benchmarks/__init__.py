"""Side-by-side figures against other programs: ratios from one run. Start one with `python -m benchmarks.NAME`."""
