"""What may be claimed of a match."""
