"""Matching: solutions of graph patterns become matches of the sequence.

``planner`` chooses a matcher for each query; open it first. ``model`` has what matchers take and return.
``context`` evaluates filters and joins, and ``host`` runs one matcher for each partition.
"""
