"""The embedded device: an Ascend C simulator that compiles kernels with g++ and runs them on any Linux machine."""
