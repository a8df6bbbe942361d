"""Settings that all tests share."""

from hypothesis import settings

# No wall-clock limits on examples: machines are noisy. The same examples every time: a red run can be repeated.
settings.register_profile("kernel_gym", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("kernel_gym")
