"""Trials on other machines: workers that take requests out of mailboxes, runs that send them."""
