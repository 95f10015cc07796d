"""Data sets: one file each, one ``load_*`` function each."""

from unpaired.datasets.sample import Pile, Sample, load_pile, load_sample

__all__ = ["Pile", "Sample", "load_pile", "load_sample"]
