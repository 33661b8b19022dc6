"""The compiled loops of the priority simulation: the runs of one first event in order of preference."""
