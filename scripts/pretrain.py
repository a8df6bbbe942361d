#!/usr/bin/env python
"""The same as `kernel-gym pretrain`."""

from kernel_gym.cli.main import script

if __name__ == "__main__":
    script("pretrain")
