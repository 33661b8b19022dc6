"""The compiled loops of enumeration: CORE's update, nodes of runs, and the walk that enumerates them."""
