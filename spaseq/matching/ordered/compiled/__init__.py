"""The compiled loops of the priority simulation: runs of one first event in the order of preference."""
