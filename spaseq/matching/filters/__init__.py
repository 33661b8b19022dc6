"""Conditions between GPMs as programs of a postfix machine over term ids.

``postfix`` translates a filter into steps; open it first. ``_kernel_machine`` runs the programs.
"""
