"""The records of the runs kernel's memory, each by the names of its fields; in the plural.

What is at a place is called by the singular, or by its letter: ``waits.time(m, w)``, ``gates.sign(t, gate)``.

In the memory, behind its ``header``: ``waits`` with their ``gaps``, ``nodes``, ``buckets``, ``partitions``,
``entries``, ``findings``, ``decisions``, ``questions``. What a query says is in ``tables``, read only.
"""
