"""A main loop for agents: a prompt, a model, tools and events."""
