"""Writes Ascend C for a plan."""
