"""Saved graphs: files of arrays, which opening a graph maps into memory instead of reading them."""
