"""The sub-commands of `kernel-gym`, one module each."""
