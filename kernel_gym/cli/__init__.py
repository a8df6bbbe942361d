"""The command `kernel-gym` and its sub-commands."""
