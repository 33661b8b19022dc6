"""The compiled loops of ``nfa`` on one array of integers that holds all runs; open ``_kernel`` first."""
