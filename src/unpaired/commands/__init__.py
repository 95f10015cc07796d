"""Sub-commands of the command line; each imports what it needs only when it runs."""
