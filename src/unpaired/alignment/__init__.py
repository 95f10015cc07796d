"""Two sides in one space from no pairs or a few."""
