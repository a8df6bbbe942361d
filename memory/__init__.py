"""Memory: what the author can be shown, kept in a bank, found by similarity."""
