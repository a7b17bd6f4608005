"""Mailboxes: queues that carry requests to workers and results back, all with one contract."""
