"""Parts for kernel_gym that somebody else wrote."""
