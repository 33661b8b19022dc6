"""Rows → events by columns: templates with holes, filled one column at a time. Open ``rows.py`` first."""
