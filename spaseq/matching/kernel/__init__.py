"""Runs by compiled tables over whole batches: the eager NFA_scep as Numba kernels on arrays."""
