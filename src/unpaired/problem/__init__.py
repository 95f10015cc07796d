"""What is to be matched, checked once."""
