"""The commands that run queries: embedded, on Spark, with a state or cursor for restarts. Open ``command.py``
first.
"""
