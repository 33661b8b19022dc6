"""The compiled loops of the priority simulation, over runs in order of preference; open ``_kernel`` first."""
