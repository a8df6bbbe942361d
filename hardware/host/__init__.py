"""What several devices share: compilers, device processes, host functions, tensors and timed calls."""
