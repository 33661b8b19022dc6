"""The compiled loops of ``tecs``: CORE's update, the nodes of runs, and the walk that enumerates them."""
