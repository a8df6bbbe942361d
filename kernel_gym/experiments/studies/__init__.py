"""Comparisons of agents over seeds, and the named studies."""
