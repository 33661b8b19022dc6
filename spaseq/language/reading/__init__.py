"""Text → syntax tree, and what is said of a text that is none."""
