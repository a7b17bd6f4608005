"""What a text says about groups of people, and verdicts that move when a group is swapped."""
