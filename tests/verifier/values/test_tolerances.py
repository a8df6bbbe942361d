"""The tolerances of expected outputs: rows of each kind, and large tensors, are compared with their own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gym.verifier import expected as expected_module
from kernel_gym.verifier.expected import (
    OUTLIER,
    OUTLIERS,
    Expected,
    expected_from,
    telling,
    telling_of_stress,
    wrong_elements,
)
from kernel_gym.verifier.value_sets import TELLING
from kernel_gym.verifier.values import Rows


def test_stressed_rows_do_not_widen_the_tolerance_of_the_others():
    rng = np.random.default_rng(0)
    stressed = np.arange(64) % 4 == 0
    truth = rng.standard_normal((64, 256)) * np.where(stressed, 1e6, 1.0)[:, None]
    native = (truth * (1 + 1e-7 * rng.standard_normal(truth.shape))).astype(np.float32)
    together, apart = (expected_from(truth, native, "float32", rows) for rows in (None, Rows((64,), stressed)))
    halves = truth.astype(np.float32)
    halves[~stressed] = halves[~stressed].astype(np.float16)
    assert not wrong_elements(halves, together).any()
    assert wrong_elements(halves, apart)[~stressed].mean() > 0.5
    assert not wrong_elements(native, apart).any()
    assert apart.clear


def test_rows_that_vanish_need_not_be_exactly_zero():
    stressed = np.arange(64) % 4 == 0
    truth = np.where(stressed, 100.0, -0.0)[:, None] * np.ones((64, 8))
    expected = expected_from(truth, truth.astype(np.float32), "float32", Rows((64,), stressed))
    assert not wrong_elements(np.where(truth, truth, -1e-30).astype(np.float32), expected).any()
    assert wrong_elements(np.where(truth, truth, -1e-6).astype(np.float32), expected)[~stressed].all()


def test_an_output_that_is_zero_everywhere_has_a_tolerance():
    expected = expected_from(np.array([-0.0]), np.array([-0.0], np.float32), "float32")
    assert not wrong_elements(np.array([-4.3e-22], np.float32), expected).any()
    assert wrong_elements(np.array([1e-3], np.float32), expected).all()


def test_outputs_with_other_rows_are_judged_as_a_whole():
    truth = np.ones((3, 5))
    expected = expected_from(
        truth, truth.astype(np.float32), "float32", Rows((4,), np.array([True, False, False, False]))
    )
    assert isinstance(expected.scale, float)


def test_severe_rows_neither_widen_the_tolerance_of_others_nor_make_values_milder():
    rng = np.random.default_rng(0)
    severe, stressed = np.arange(64) == 3, np.arange(64) % 4 == 0
    truth = rng.standard_normal((64, 256)) * np.where(severe, 1e5, 1.0)[:, None]
    native = np.where(severe[:, None], truth * 1.2, truth).astype(np.float32)
    native[3, :5] = np.nan
    expected = expected_from(truth, native, "float32", Rows((64,), stressed, severe))
    assert expected.clear
    assert expected.left_out == 5
    assert not expected.counts[3, :5].any()
    assert not wrong_elements(native, expected).any()
    halves = native.astype(np.float32)
    halves[~severe] = halves[~severe].astype(np.float16)
    assert wrong_elements(halves, expected)[~severe].mean() > 0.5
    overflown = truth.astype(np.float32)
    overflown[3, 7] = np.inf
    assert np.argwhere(wrong_elements(overflown, expected)).tolist() == [[3, 7]]


@pytest.mark.parametrize("noise", [1e-7, 1e-4])
def test_a_severe_row_that_is_a_large_share_is_compared_as_precisely_as_the_reference_computes(noise):
    rng = np.random.default_rng(0)
    severe, stressed = np.arange(8) == 3, np.arange(8) % 4 == 0
    truth = rng.standard_normal((8, 256)) * np.where(severe, 1e5, 1.0)[:, None]
    native = truth * (1 + noise * rng.standard_normal(truth.shape) * severe[:, None])
    expected = expected_from(truth, native.astype(np.float32), "float32", Rows((8,), stressed, severe))
    assert expected.clear
    rough = truth.astype(np.float32)
    rough[severe] *= 1 + 5e-4
    assert wrong_elements(rough, expected).any() == (noise < 1e-5)


def test_a_reference_that_is_a_little_noisy_does_not_excuse_a_severe_row_that_is_a_large_share():
    rng = np.random.default_rng(0)
    severe, stressed = np.arange(8) == 3, np.arange(8) % 4 == 0
    truth = rng.standard_normal((8, 256)) * np.where(severe, 1e5, 1.0)[:, None]
    native = truth * (1 + 1e-5 * rng.standard_normal(truth.shape))
    expected = expected_from(truth, native.astype(np.float32), "float32", Rows((8,), stressed, severe))
    rough = truth.astype(np.float32)
    rough[severe] *= 1.01
    assert wrong_elements(rough, expected)[severe].mean() > 0.5
    assert not wrong_elements((2 * native - truth).astype(np.float32), expected)[severe].any()


def test_rows_of_each_kind_are_compared_with_their_own():
    """A few rows that differ from the others say nothing of these."""
    rng = np.random.default_rng(0)
    stressed = np.arange(16) % 4 == 0
    truth = np.where(stressed[:, None], 100 * rng.standard_normal((16, 8)), np.arange(8.0))
    expected = expected_from(truth, truth, "float32", Rows((16,), stressed))
    assert telling(expected, 16) == 0.0
    assert telling(expected, 16, apart=False) > 0.9 * TELLING
    truth[1] += 1
    assert 0 < telling(expected_from(truth, truth, "float32", Rows((16,), stressed)), 16) < TELLING
    truth += rng.standard_normal((16, 1))
    assert telling(expected_from(truth, truth, "float32", Rows((16,), stressed)), 16) > TELLING


def test_stressed_rows_of_an_output_are_compared_with_each_other():
    rng = np.random.default_rng(0)
    stressed = np.arange(16) % 4 == 0
    truth = np.where(stressed[:, None], np.arange(8.0), rng.standard_normal((16, 8)))
    expected = expected_from(truth, truth, "float32", Rows((16,), stressed))
    assert telling(expected, 16) > TELLING
    assert telling_of_stress(expected, 16) == 0.0
    truth[stressed, :1] += rng.standard_normal((4, 1))
    assert telling_of_stress(expected_from(truth, truth, "float32", Rows((16,), stressed)), 16) > TELLING
    assert telling_of_stress(expected_from(truth, truth, "float32"), 16) == 1.0


def test_spikes_do_not_widen_the_tolerance_of_the_elements_beside_them():
    rng = np.random.default_rng(0)
    stressed = np.arange(64) % 4 == 0
    truth = rng.standard_normal((64, 256))
    truth[stressed, ::64] *= 100
    expected = expected_from(truth, truth.astype(np.float32), "float32", Rows((64,), stressed))
    assert expected.scale[0] < 2 < 8 < np.sqrt(np.square(truth[stressed]).mean())
    products = rng.standard_normal((64, 256)) * np.where(stressed, 400.0, 1.0)[:, None]
    expected = expected_from(products, products.astype(np.float32), "float32", Rows((64,), stressed))
    assert expected.scale[0] > 350


def simple(actual, expected):
    """The rule of comparison on whole arrays."""
    error, tolerance = np.abs(actual.astype(np.float64) - expected.truth), expected.tolerance
    finite = np.isfinite(expected.truth)
    near = error <= tolerance
    if 0 < (~near & finite).sum() <= OUTLIERS * near.size:
        near = error <= OUTLIER * tolerance
    same = (actual == expected.truth) | (np.isnan(actual) & np.isnan(expected.truth))
    return ~np.where(finite, near, same) & expected.counts


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(0, 9), st.integers(1, 40)),
    seed=st.integers(0, 2**32),
    error=st.sampled_from([1e-5, 1e-4, 1e-2]),
    special=st.sampled_from([None, np.inf, -np.inf, np.nan]),
    by_row=st.booleans(),
)
def test_pieces_are_compared_as_the_whole(shape, seed, error, special, by_row):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(shape)
    actual = (truth * (1 + error * rng.standard_normal(shape))).astype(np.float32)
    if special is not None and truth.size:
        truth.flat[rng.integers(truth.size)] = special
        actual.flat[rng.integers(truth.size)] = special
    scale = rng.uniform(0, 2, (shape[0], 1)) if by_row else 1.0
    expected = Expected(truth, rng.random(shape) < 0.9, 5e-5, scale=scale)
    with pytest.MonkeyPatch.context() as patch, np.errstate(invalid="ignore"):
        patch.setattr(expected_module, "PIECE", 16)
        assert np.array_equal(wrong_elements(actual, expected), simple(actual, expected))
