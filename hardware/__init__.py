"""Devices that run kernels, the sandbox they run in, the workers that drive them."""
