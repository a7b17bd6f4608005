"""The engine: every door comes through here, none has a loop of its own.

`plan` says what is to be run, `run` streams it through a fixed number of workers, `trial` runs and
scores one, `limits` ends what takes too long, `threads` lends threads to what blocks, `retry` says
what is worth another attempt, `cache` reuses outputs, `progress` tells how far it is, and `finish`
computes the metrics.
"""
