"""The command line: one file a command, each parses, calls, prints and exits.

Exit codes: 0 good, 1 below a threshold, 2 usage, 3 trouble, 130 interrupted. Where the
reader of the output has gone (`| head`), the code stays what it is.
"""
