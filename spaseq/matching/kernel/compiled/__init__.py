"""The compiled loops of the runs kernel, on one array of integers that holds all runs."""
