"""Static checks: find errors and likely mistakes in a query before it runs.

``checks.py`` calls all checks; open it first.
"""
