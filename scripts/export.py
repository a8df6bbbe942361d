#!/usr/bin/env python
"""The same as `kernel-gym export`."""

from kernel_gym.cli.main import script

if __name__ == "__main__":
    script("export")
