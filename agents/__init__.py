"""Policies: who chooses what the author is shown. One readable file each."""
