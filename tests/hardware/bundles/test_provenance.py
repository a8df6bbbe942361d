"""Where the values of a launch come from: moved by torch, or computed by it."""

import numpy as np
import pytest

from kernel_gym.hardware.bundles.provenance import Probe

X = np.random.default_rng(1).standard_normal((6, 8)).astype(np.float32)
LABELS = np.arange(100, dtype=np.int64) * 7 % 100


def origin(model, *known):
    """Return where the result of a model comes from, seen first without the values of the known arrays."""
    probe = Probe()
    probe.observe(np.ascontiguousarray(model(*(probe.give(array) for array in known))))
    return probe.origin(0, np.ascontiguousarray(model(*known)), known)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda x: x, "same"),
        (lambda x: x.reshape(8, 6)[2:5], "same"),
        (lambda x: x.T, "moved"),
        (lambda x: x[:, :3], "moved"),
        (lambda x: np.pad(x, 1), "moved"),
        (lambda x: np.concatenate([x, x]), "moved"),
        (lambda x: np.full((4, 4), 1.5, np.float32), "constant"),
        (lambda x: np.arange(9, dtype=np.int32), "constant"),
        (lambda x: x * 2, "computed"),
        (lambda x: np.maximum(x, 0), "computed"),
        (lambda x: np.sort(x), "computed"),
        (lambda x: x.max(axis=1), "computed"),
        (lambda x: np.full((4, 4), x.sum(), np.float32), "computed"),
        (lambda x: x.view(np.int32), "computed"),
        (lambda x: (x.view(np.int32) >> 10 | 0x7FC00000).view(np.float32), "computed"),
        (lambda x: x.astype(np.float16), "computed"),
    ],
)
def test_torch_may_move_values_and_not_choose_or_compute_them(model, expected):
    assert origin(model, X) == expected


def test_integers_may_have_another_type_and_no_other_values():
    assert origin(lambda x, labels: labels.astype(np.int32), X, LABELS) == "same"
    assert origin(lambda x, labels: np.sort(labels) * 2, X, LABELS) == "computed"


def test_an_array_that_the_second_call_did_not_see_is_computed():
    probe = Probe()
    probe.give(X)
    assert probe.origin(0, X, [X]) == "computed"
    probe.observe(X[:1])
    assert probe.origin(0, X, [X]) == "computed"
