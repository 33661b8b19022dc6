"""Quads → events: what belongs together, when it is complete, and columns of it."""
