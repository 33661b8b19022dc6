"""Lazy evaluation: buffer events and build matches from the rarest GPM on; open ``matcher`` first."""
