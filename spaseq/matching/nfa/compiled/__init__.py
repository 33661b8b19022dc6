"""The compiled loops of the NFA on one array of integers that holds all runs; open ``_kernel`` first."""
