"""What the viewer and the one-file HTML report show, as JSON: one function per page."""
