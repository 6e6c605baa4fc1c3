"""Compute what NumPy and JAX lack: safe arithmetic, roots, random numbers."""
