"""People's files in and out."""
