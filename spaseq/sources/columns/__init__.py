"""Rows → events by columns: templates with holes, filled a column at a time."""
