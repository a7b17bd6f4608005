"""Names of groups of people, and texts in which one stands for another."""
