"""The routes of the server, one file per resource. Open ``queries.py`` first."""
