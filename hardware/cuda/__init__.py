"""NVIDIA GPUs: device code compiled by NVRTC, launched and timed by a process that runs no candidate's host code."""
