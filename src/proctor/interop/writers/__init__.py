"""Writers of other tools' files, one module per format."""
