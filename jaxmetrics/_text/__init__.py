"""Results as readable text: numbers, names and tables as words, and how they are printed."""
