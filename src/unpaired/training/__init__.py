"""The learning loop and its objective."""
