"""Filters between GPMs as data: programs of a postfix machine over term ids, and the machine."""
