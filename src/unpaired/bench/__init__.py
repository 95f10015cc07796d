"""The harness: methods x label shares x seeds on a data set, one JSON file per finished cell."""
