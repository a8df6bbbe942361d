"""The sub-commands of `kernel-gym` that analyse and measure, one module each."""
