"""Chunks: events and the solutions that GPMs found in them, as bytes."""
