"""Decide where and how functions are computed: NumPy or JAX, compilation, meshes, chunks."""
