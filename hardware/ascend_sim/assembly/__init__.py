"""Reads compiled kernel code as assembly and puts its memory accesses under the guard."""
