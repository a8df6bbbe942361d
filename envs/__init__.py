"""The environment, its vector form, the observation layout and the rewards."""
