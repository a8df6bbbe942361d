"""The apprentice's CUDA: the same plans, written as kernels for NVIDIA GPUs."""
