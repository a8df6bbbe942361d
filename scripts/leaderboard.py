#!/usr/bin/env python
"""The same as `kernel-gym leaderboard`."""

from kernel_gym.cli.main import script

if __name__ == "__main__":
    script("leaderboard")
