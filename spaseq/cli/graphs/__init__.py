"""The commands that ask a graph, draw what they found, or keep one."""
