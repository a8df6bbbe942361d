"""An author on the nodes of a cluster: the kernels of one machine, also when an actor is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.contract import Batching, WriteRequest
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.service.cluster_author import ClusterAuthor
from kernel_gym.service.local_cluster import local_cluster

TASKS = [suites.find_task(f"level1/{name}") for name in ("relu", "tanh", "softmax", "gelu", "sigmoid")]


@pytest.fixture
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray", reason="needs Ray")
    with local_cluster(2) as cluster:
        yield cluster


def requests() -> list[WriteRequest]:
    return [WriteRequest(task, (), None, np.random.default_rng(number)) for number, task in enumerate(TASKS)]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_actors_write_what_the_author_writes_also_when_one_is_lost(cluster: Any) -> None:
    """Run by `make test-slow`."""
    author = Apprentice("weak")
    here = [author.write(ask.task, ask.context, ask.start, ask.rng) for ask in requests()]
    there = ClusterAuthor(author, cluster.address)
    assert isinstance(there, Batching)
    assert there.write_many(requests()) == here
    assert len(there._actors) == 2
    (lost, _) = there._actors
    os.kill(there._ray.get(lost.__ray_call__.remote(lambda writer: os.getpid())), signal.SIGKILL)
    assert there.write_many(requests()) == here
    assert lost not in there._actors, "another actor takes its place"
    assert there.write_many(requests()) == here
    there.close()


def test_a_model_stays_where_its_transcript_is() -> None:
    class Model(Apprentice):
        def record_to(self, path: object) -> None: ...

        def usage(self) -> dict[str, float]:
            return {}

    model, program = Model(), Apprentice()
    options = Options(cluster="127.0.0.1:6379")
    assert factories.author_on_cluster(model, options) is model
    assert factories.author_on_cluster(program, Options()) is program
    assert factories.author_on_cluster(program, options).identity() == program.identity()
