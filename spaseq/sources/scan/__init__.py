"""The fast path for N-Quads and N-Triples: lines → ids, by compiled kernels. Open ``fast.py`` first."""
