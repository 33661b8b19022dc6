"""The records of the runs kernel's memory and tables, each by the names of its fields; in the plural.

What is at a place is called by the singular, or by its letter: ``waits.time(m, w)``, ``gates.sign(t, gate)``.

In the tables, read only: ``places``, ``accepts``, ``gates``, ``candidates``, ``parts``, ``units``,
``actions``, ``kleenes``, ``checks``, ``chains``; where a field is a start and another an end, they enclose
rows of another section. In the memory, behind its ``header``: ``waits`` with their ``gaps``, ``nodes``,
``buckets``, ``partitions``, ``entries``, ``findings``, ``decisions``, ``questions``.
"""
