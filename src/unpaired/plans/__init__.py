"""Who goes with whom, softly or not."""
