"""SPARQL over background graphs, the events in a query's window, and matches. Open ``process.py`` first."""
