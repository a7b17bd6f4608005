"""Fields of what a trial left behind: paths to them, and what evaluators see of them."""
