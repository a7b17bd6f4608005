"""A main loop of one's own: a prompt, a model, tools, and what becomes of them."""
