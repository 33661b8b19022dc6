"""The records of the runs kernel's tables, which a query is written to once; in the plural.

``places``, ``accepts``, ``gates``, ``candidates``, ``parts``, ``units``, ``actions``, ``kleenes``,
``checks``, ``chains``. Where a field is a start and another an end, they enclose rows of another section.
"""
