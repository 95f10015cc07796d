"""Two sides in one space from many pairs, with networks."""
