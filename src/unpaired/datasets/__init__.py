"""Data sets: one file each, one ``load_*`` function each."""

from unpaired.datasets.sample import Sample, load_sample

__all__ = ["Sample", "load_sample"]
