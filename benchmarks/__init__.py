"""Benchmarks beside other packages, on the same rows in the same run."""
