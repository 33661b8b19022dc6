"""The records of the runs kernel's memory, each by the names of its fields; a module has the plural's name.

What is at a place is called by the singular, or by its letter: ``waits.time(m, w)``, ``nodes.way(m, node)``.
"""
