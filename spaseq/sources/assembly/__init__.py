"""Quads → events: which quads belong together, and when an event is complete. Open ``assemble.py`` first."""
