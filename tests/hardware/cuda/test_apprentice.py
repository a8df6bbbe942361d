"""The apprentice's CUDA before the verifier: oracles pass every gate, and mistakes end where they say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cuda_exhibits import with_mistake

from kernel_gym import suites
from kernel_gym.authors.apprentice import naive, oracle
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling, idioms
from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.verdict import Incorrect
from kernel_gym.verifier import Verifier

pytestmark = pytest.mark.cuda

#: One of each family.
SAMPLE = (
    "relu", "gelu", "softmax", "layer_norm", "batch_norm", "sum_reduction_over_a_dimension", "argmax_over_a_dimension",
    "standard_matrix_multiplication", "matrix_vector_multiplication", "conv_standard_1d", "max_pooling_2d", "cumsum",
    "cross_entropy_loss", "scaled_dot_product_attention",
)  # fmt: skip
MISTAKES = [
    pytest.param(idiom, spelling, id=f"{idiom.id}:{spelling.name}")
    for idiom in idioms("cuda").values()
    for spelling in idiom.wrong
    if idiom.effect_of(spelling) != "slow"
]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(Cuda()) as judge:
        yield judge


@pytest.mark.parametrize("name", SAMPLE)
def test_an_oracle_passes_every_gate(name: str, verifier: Verifier) -> None:
    task = suites.find_task(f"level1/{name}")
    verdict = verifier.verify(oracle(task, "cuda"), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.parametrize("name", ["softmax", "standard_matrix_multiplication"])
def test_an_oracle_beats_the_naive_schedule(name: str, verifier: Verifier) -> None:
    task = suites.find_task(f"level1/{name}")
    slow, fast = (verifier.verify(writer(task, "cuda"), task) for writer in (naive, oracle))
    assert slow.latency_us is not None, slow.feedback
    assert fast.latency_us is not None, fast.feedback
    assert slow.latency_us > fast.latency_us


@pytest.mark.slow
@pytest.mark.parametrize(("idiom", "mistake"), MISTAKES)
def test_a_mistake_has_its_declared_effect(idiom: Idiom, mistake: Spelling, verifier: Verifier) -> None:
    """Run by `pytest -m 'slow and cuda' tests/cuda` on a machine with a GPU."""
    verdict = verifier.verify(*with_mistake(idiom, mistake))
    outcome = verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome
    assert outcome == idiom.effect_of(mistake), verdict.feedback
