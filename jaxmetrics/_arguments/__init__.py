"""Convert and check arguments, on their way in."""
