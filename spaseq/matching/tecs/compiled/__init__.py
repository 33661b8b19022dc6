"""The compiled loops of ``tecs``: CORE's update, the nodes of runs, and their enumeration; open ``_kernel``
first.
"""
