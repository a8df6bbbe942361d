"""Kernels for a problem file that runs confined meet the same value sets and tolerances as for a trusted one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernel_gym.confinement import python_process
from kernel_gym.confinement.programs import programs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.reference import evaluate, tried
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity.parts import heavy_products, large_softmaxes
from kernel_gym.verifier.value_sets import References, make

SEEDS = Seeds(b"a secret of the tests", "task", "kernel")
KERNEL = Kernel("int kernel;")

pytestmark = pytest.mark.skipif(
    programs().confinement.tier not in python_process.TRUSTWORTHY, reason="this machine's sandbox is too weak"
)

LAYER = "self.layer = nn.Linear(columns, 16)"
#: Modules with a part that a kernel could save: expression, constructor, the trial in which it is saved, and how many
#: parts no values show.
PARTS = {
    "a product in half precision": ("x[:, :16] + 0.02 * self.layer(x)", LAYER, Trial(half=0), 0),
    "a softmax": (
        "x[:, :16] + 1e-4 * torch.softmax(0.3 * self.layer(x), 1)",
        LAYER,
        Trial(constant_weights={0: None}),
        0,
    ),
    "an iteration": (
        "[y := self.layer(x), *(y := y * (1 + 2**-20) for _ in range(self.iterations))][-1]",
        f"{LAYER}; self.iterations = 6",
        Trial(fewer_iterations=1),
        1,
    ),
    "a branch": ("x[:, :16] + torch.relu(-1 - self.layer(x).square())", LAYER, Trial(half=0), 1),
    "a term": ("x / (x * (1 + 1e-3 * (x.dtype == torch.float32))).norm()", "", Trial(rounded="results"), 0),
}


@pytest.mark.parametrize("kind", [pytest.param("mixed", marks=pytest.mark.slow), "ordinary"])
@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=pytest.mark.slow if part in ("an iteration", "a branch") else ()) for part in PARTS],
)
def test_a_confined_file_is_judged_as_strictly_as_a_trusted_one(make_task, part, kind):
    expression, init, _, hidden = PARTS[part]
    trusted = make_task(expression, init=init)
    confined = replace(trusted, confined=True)
    assert heavy_products(confined, confined.timing) == heavy_products(trusted, trusted.timing)
    assert large_softmaxes(confined, confined.timing) == large_softmaxes(trusted, trusted.timing)
    references = References(secret=b"a secret of the tests")
    ours, theirs = (references.draw(task, task.timing, kind, "timed", KERNEL) for task in (confined, trusted))
    assert ours.key == theirs.key
    assert ours.hidden == theirs.hidden == hidden
    assert (ours.rung, ours.saturated, ours.shown) == (theirs.rung, theirs.saturated, theirs.shown)
    for mine, other in zip(ours.expected, theirs.expected, strict=True):
        for what in ("truth", "scale", "noise", "base"):
            assert np.array_equal(getattr(mine, what), getattr(other, what), equal_nan=True)


@pytest.mark.parametrize("part", PARTS)
def test_a_trial_of_a_confined_file_is_that_of_a_trusted_one(make_task, part):
    expression, init, trial, _ = PARTS[part]
    trusted = make_task(expression, init=init)
    instances = [task.instance(task.public) for task in (trusted, replace(trusted, confined=True))]
    values = make(trusted, trusted.public, "normal", SEEDS, "s").values
    dtype = torch.float64 if trial.rounded else None
    usual = np.arange(len(values[0])) % 4 > 0
    (here, counts), (there, counts_there) = (tried(instance, values, trial, dtype, usual) for instance in instances)
    assert counts == counts_there
    assert np.array_equal(here[0], there[0])
    plain = evaluate(instances[1], values, dtype, widen=False)
    assert np.array_equal(there[0], plain[0]) is (counts.constant_activations > 0)  # nothing before it matters
