"""The compiled loops of ``kernel`` on one array of integers that holds all runs; open ``_kernel`` first."""
