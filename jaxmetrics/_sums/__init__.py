"""Count examples and add up weights."""
