"""The fast path: lines of N-Quads and N-Triples → ids, by compiled kernels."""
