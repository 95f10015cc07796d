"""The harness: methods x label shares x seeds on a data set, one line per finished cell."""
