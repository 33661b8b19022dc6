"""Path expressions, from text to a syntax tree to an automaton."""
