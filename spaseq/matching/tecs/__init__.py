"""Find all matches at constant cost per event and enumerate them on demand (CORE: tECS).

Open ``matcher`` first.
"""
