"""What tests of agents share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def shared_ray() -> Iterator[None]:
    """One Ray for the tests of a file, whose start takes seconds; agents start their own only if there is none."""
    from kernel_gym.agents.rllib import _silent_ray

    with _silent_ray(""):
        yield
