"""The apprentice on a table: its decisions, computed for many attempts at once, and the kernels that they lead to."""
