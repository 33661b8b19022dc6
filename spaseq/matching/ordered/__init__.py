"""AFTER MATCH SKIP: of each first event the preferred match, by a priority simulation."""
