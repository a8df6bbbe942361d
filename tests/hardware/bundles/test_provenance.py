"""Where the values of a launch come from: moved by torch, or computed by it."""

import numpy as np
import pytest
import torch

from kernel_gym.hardware.bundles import call, provenance
from kernel_gym.hardware.bundles.provenance import Probe

X = np.random.default_rng(1).standard_normal((6, 8)).astype(np.float32)
LABELS = np.arange(100, dtype=np.int64) * 7 % 100


def origin(model, *known):
    """Return where the result of a model comes from, seen first without the values of the known arrays."""
    probe = Probe()
    probe.observe(np.ascontiguousarray(model(*(probe.give(array) for array in known))))
    return probe.origin(0, np.ascontiguousarray(model(*known)), known).kind


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda x: x, "input"),
        (lambda x: x.reshape(8, 6)[2:5], "input"),
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
        (lambda x: np.empty((0, int(abs(x.sum()) * 1000))), "computed"),
        (lambda x: np.where(x > 0, x[0, 0], x[0, 1]), "computed"),
        (lambda x: np.empty((0, 3)), "result"),
    ],
)
def test_torch_may_move_values_and_not_choose_or_compute_them(model, expected):
    assert origin(model, X) == expected


def test_integers_may_have_another_type_and_no_other_values():
    assert origin(lambda x, labels: labels, X, LABELS) == "input"
    assert origin(lambda x, labels: labels.view(np.uint64), X, LABELS) == "input"
    assert origin(lambda x, labels: labels.astype(np.int32), X, LABELS) == "moved"  # which torch has to write
    assert origin(lambda x, labels: np.sort(labels) * 2, X, LABELS) == "computed"


def test_parts_of_one_array_are_known_to_meet():
    probe = Probe()
    for given in (probe.give(X), probe.give(X, result=True)):
        for part in (given, given[1:3], given[2:], given.reshape(-1)[:8]):
            probe.observe(part)
    parts = [X, X[1:3], X[2:], X.reshape(-1)[:8]]
    own, other = ([probe.origin(4 * i + k, parts[k], [X, X]) for k in range(4)] for i in range(2))
    assert ({each.kind for each in own}, {each.kind for each in other}) == ({"input"}, {"result"})
    assert [[each.meets(last) for last in own] for each in own[1:]] == [
        [True, True, True, False],
        [True, True, True, False],
        [True, False, False, True],
    ]
    assert not any(each.meets(last) for each in own for last in other)


def test_an_array_that_the_second_call_did_not_see_is_computed():
    probe = Probe()
    probe.give(X)
    assert probe.origin(0, X, [X]).kind == "computed"
    probe.observe(X[:1])
    assert probe.origin(0, X, [X]).kind == "computed"


def test_an_element_is_moved_or_constant_as_in_the_second_call():
    """A model that knew the value of an element in the second call could write it, and choose in the call itself."""
    probe = Probe()
    (first,) = probe.give(X[:1, :1]).ravel()
    probe.observe(np.full(4, first))
    chosen = np.array([X[0, 0], first, first, X[0, 0]])
    assert probe.origin(0, chosen, [X[:1, :1]]).kind == "computed"
    assert probe.origin(0, np.full(4, X[0, 0]), [X[:1, :1]]).kind == "moved"


def test_values_of_16_bits_are_not_chosen():
    words = np.arange(65536, dtype=np.uint16).view(np.float16)
    assert origin(lambda x, words: x.ravel().view(np.float16), X, words) == "computed"
    assert origin(lambda x, words: words, X, words) == "input"


def test_the_values_of_the_second_call_are_secret():
    assert len({float(Probe().give(X)[0, 0]) for _ in range(8)}) > 1


@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_the_choice_between_results_is_not_free(dtype):
    """Which of two results a model passes on would carry a bit."""
    probe, results = Probe(), [np.zeros(8, dtype), np.ones(8, dtype)]
    first, _ = (probe.give(result, result=True) for result in results)
    probe.observe(first)
    assert [probe.origin(0, result, results).kind for result in results] == ["result", "computed"]


def test_the_choice_between_results_of_one_truth_value_is_not_free():
    """Among many such results every pair of values of the two calls exists."""
    probe, results = Probe(), [np.array([k % 2 == 1]) for k in range(24)]
    given = [probe.give(result, result=True) for result in results]
    probe.observe(given[0])
    chosen = [probe.origin(0, np.array([value]), results).kind for value in (True, False)]
    assert chosen.count("computed") >= 1
    assert "result" not in chosen


def test_truth_values_are_compared_by_their_bytes():
    """A kernel reads the bytes: 0x37 is as true as 0x01 for numpy."""
    probe, ones = Probe(), np.ones(8, bool)
    probe.observe(probe.give(ones, result=True))
    odd = np.frombuffer(bytes(range(1, 9)), bool)
    assert probe.origin(0, ones, [ones]).kind == "result"
    assert probe.origin(0, odd, [ones]).kind == "computed"
    assert origin(lambda mask: mask.astype(np.int8), np.arange(64) % 3 == 0) == "input"


def test_an_array_is_not_the_choice_between_a_result_and_a_constant():
    """The values of the second call, which the model has seen, would be a constant in the call itself."""
    probe, zeros = Probe(), np.zeros(2, np.int8)
    given = probe.give(zeros, result=True)
    probe.observe(given)
    assert probe.origin(0, zeros, [zeros]).kind == "result"
    assert probe.origin(0, given, [zeros]).kind == "computed"


def test_results_of_few_elements_differ_from_each_other():
    probe = Probe()
    given = [int(probe.give(np.zeros(1, np.uint8), result=True)[0]) for _ in range(40)]
    assert len(set(given)) == 40


def test_a_large_array_may_go_through_many_launches(monkeypatch):
    """Of arrays that are sent back as they were given, none is kept twice: a workspace may have gigabytes."""
    monkeypatch.setattr(provenance, "MOST_BYTES", 1000)
    probe, results = Probe(), [np.arange(800, dtype=np.uint8) + np.uint8(launch) for launch in range(4)]
    for result in results:
        probe.observe(probe.give(result, result=True).copy())
    assert [probe.origin(i, results[i], results[: i + 1]).kind for i in range(4)] == ["result"] * 4
    probe.observe(np.arange(1001, dtype=np.int32))  # what is not sent back is kept, up to a limit
    assert probe.origin(4, np.arange(1001, dtype=np.int32), results).kind == "computed"


def test_where_a_launch_has_no_tensor_may_not_differ():
    """Optional inputs that are there or not would carry a bit each."""
    tensor = torch.zeros(1)
    assert call._plain_values([tensor, None, 2.0]) != call._plain_values([None, tensor, 2.0])
    assert call._plain_values([tensor, float("nan")]) == call._plain_values([tensor + 1, float("nan")])
