"""Graphs in files of their own: arrays that are mapped, not read, when a graph is opened again."""
