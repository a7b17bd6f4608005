"""Writers of other evaluation tools' files, as report formats."""
