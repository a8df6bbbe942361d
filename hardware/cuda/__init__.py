"""NVIDIA GPUs: device code compiled by NVRTC, launched and timed by a process that runs no host code of kernels."""
