"""The space both sides share, and a Match read out of it."""
