"""How much of two answers in C is the same text, whatever its names, layout and comments."""
