"""The conformance suite: one test per clause of the five specifications."""
