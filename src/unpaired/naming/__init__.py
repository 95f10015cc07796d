"""Images to classes: groups of rows and the names they take."""
