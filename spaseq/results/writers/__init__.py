"""Writers of results: matches → bytes, one file per format. Open ``_base.py`` first."""
