"""Settings that all tests share."""

import os
import signal

from hypothesis import settings

# No wall-clock limits on examples: machines are noisy. The same examples every time: a red run can be repeated.
settings.register_profile("kernel_gym", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("kernel_gym")

# The problem files of the tests are ours. Those that test the confinement of others remove the variable.
os.environ["KERNEL_GYM_TRUST"] = "1"

# Shells let what runs in the background ignore Ctrl-C, and what the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
