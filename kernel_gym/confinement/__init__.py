"""Confinement of untrusted code: the programs that set it up, and which tier of it a machine offers."""
