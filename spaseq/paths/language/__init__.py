"""Path expressions: text → tree → automaton."""
