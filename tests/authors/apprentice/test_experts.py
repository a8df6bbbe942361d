"""Tests of the expert's kernels, which are the oracles: stages in one launch, convolutions by lines and phases."""

from __future__ import annotations

import re
import shutil
import subprocess
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy
import torch

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice, fluent, lower, oracle
from kernel_gym.authors.apprentice.ascendc.expert.columns import suits_columns
from kernel_gym.authors.apprentice.ascendc.expert.convolution import LINES
from kernel_gym.authors.apprentice.ascendc.expert.rows import LONGEST, kinds_of
from kernel_gym.authors.apprentice.ascendc.expert.windows import suits_windows
from kernel_gym.authors.apprentice.frontend.expression import Map, Reduce, Regrouped, Value, contiguous, split
from kernel_gym.authors.apprentice.frontend.operators.elementwise import _GELU, _GELU_LIMIT
from kernel_gym.authors.apprentice.frontend.operators.taps import _against, _along
from kernel_gym.authors.apprentice.frontend.plan import (
    Convolution,
    Either,
    Filters,
    GroupNorm,
    Interleave,
    Nest,
    Pad,
    Pooling,
    Ref,
    Running,
    Taps,
    Turned,
)
from kernel_gym.authors.apprentice.frontend.sizes import ONE
from kernel_gym.cli.commands import author
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs
from kernel_gym.hardware.host.tensors import random_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "hop", "extra"), [(3, 2, 1, 1, 1), (4, 3, 0, 1, 0), (3, 2, 1, 2, 0)]
)
def test_the_phases_of_a_transposed_convolution_hold_every_place_once(
    kernel: int, stride: int, pad: int, hop: int, extra: int
) -> None:
    """One direction, computed by its phases and by the definition: every element adds to the places of its window."""
    x, w = np.random.default_rng(0).normal(size=7), np.random.default_rng(1).normal(size=kernel)
    direction = _against(kernel, stride, pad, hop, extra)
    assert sorted(place for phase in direction.phases for place, _ in phase) == list(range(kernel))
    padded = np.pad(x, (direction.before, direction.after))
    count = len(x) + direction.more
    whole = np.zeros(count * stride)
    for rest, phase in enumerate(direction.phases):
        whole[rest::stride] = sum((w[place] * padded[shift : shift + count] for place, shift in phase), np.zeros(count))
    spread = np.zeros((len(x) - 1) * stride + hop * (kernel - 1) + 1 + extra)
    for i, value in enumerate(x):
        spread[i * stride : i * stride + hop * (kernel - 1) + 1 : hop] += value * w
    expected = spread[pad : len(spread) - pad]
    assert len(x) * stride + direction.wider == len(expected)
    np.testing.assert_allclose(whole[direction.crop :][: len(expected)], expected)


def test_a_direction_of_stride_1_has_one_phase() -> None:
    direction = _along(3, 1, 2)
    assert direction.phases == (((0, 0), (1, 2), (2, 4)),)
    assert (direction.before, direction.more, direction.even) == (1, -2, True)


def test_an_oracle_of_several_stages_is_one_launch_and_the_apprentice_s_is_not() -> None:
    task = suites.find_task("level2/conv_transpose2d_subtract_tanh")
    expert, own = oracle(task).source, fluent(task).source
    assert expert.count("<<<") == 1
    assert own.count("<<<") == 6
    # Images are padded and filters arranged at the same time; the cores meet before a stage reads.
    assert expert.count("AscendC::SyncAll();") == 3


def test_stages_on_the_cube_unit_share_the_pipe_of_the_next_one() -> None:
    """A pipe costs a microsecond. Stages that pad images or arrange filters have none."""
    assert oracle(suites.find_task("level2/gemm_add_relu")).source.count("AscendC::TPipe pipe;") == 1
    assert oracle(suites.find_task("level2/conv_transpose2d_subtract_tanh")).source.count("AscendC::TPipe pipe;") == 2


def test_a_product_adds_its_bias() -> None:
    task = suites.find_task("level2/matmul_gelu_softmax")
    assert "mm.SetBias(gemmBiasGm[column]);" in oracle(task).source
    assert "SetBias" not in fluent(task).source
    # Several cores share a sum: each would add the bias.
    assert "SetBias" not in oracle(suites.find_task("level1/matmul_with_large_k_dimension")).source


@pytest.mark.parametrize(
    ("name", "early"),
    [
        ("matmul_gelu_softmax", "tiling.stage0.early / t.batch"),
        ("gemm_group_norm_hardtanh", "tiling.stage0.early * t.rows1 / t.batch"),
        ("gemm_scale_batch_norm", "tiling.stage0.early * t.tiles"),
        ("gemm_relu_divide", "tiling.stage0.early * tiling.stage0.n / t.tile"),
        ("matmul_max_pool_sum_scale", "tiling.stage0.early / t.batch"),
    ],
)
def test_a_half_of_a_product_is_computed_beside_the_stage_behind_it(name: str, early: str) -> None:
    source = oracle(suites.find_task(f"level2/{name}")).source
    assert "IterateAll<false>" in source
    assert source.index("op0.Process(1);") < source.index("op1.Process(0);") < source.index("op1.Process(1);")
    assert f"t.early = {early};" in source


@pytest.mark.slow
def test_a_product_in_front_of_few_elements_is_not_halved() -> None:
    assert "op0.Process(1);" not in oracle(suites.find_task("level1/scaled_dot_product_attention")).source


def test_a_reduction_behind_a_group_norm_reduces_each_group_first() -> None:
    """The norm itself is not written: eight numbers of a row are."""
    stages = lower(suites.find_task("level2/gemm_group_norm_min_bias_add"), expert=True).stages
    _, norm, rest = (stage for stage in stages[:3])
    assert isinstance(norm, Nest)
    assert isinstance(rest, Nest)
    assert not norm.steps[norm.stores[0].step].inside
    assert kinds_of(rest) == ["tile", "row"]


@pytest.mark.slow
def test_numbers_of_rows_are_compared_together() -> None:
    source = oracle(suites.find_task("level2/matmul_scale_residual_add_clamp_log_sum_exp_mish")).source
    assert "AscendC::Select(stat" in source
    assert "Align(rows, 64)" in source


def kinds_of_stages(name: str) -> list[type]:
    """Return the kinds of the stages of an expert's plan."""
    return [type(stage) for stage in lower(suites.find_task(name), expert=True).stages]


def test_a_convolution_of_stride_1_is_one_launch_on_cube_cores() -> None:
    source = oracle(suites.find_task("level1/conv_standard_2d_square_input_square_kernel")).source
    _, *kernels = source.split('extern "C" __global__')
    assert ["KERNEL_TYPE_AIC_ONLY" in kernel for kernel in kernels] == [False, True]
    assert "REGIST_MATMUL_OBJ" not in source  # products by hand, without a library that needs vector cores
    assert "SyncAll" not in source


@pytest.mark.parametrize(
    ("name", "cores"),
    [
        ("level2/conv2d_relu_bias_add", 24),
        ("level2/conv2d_mish_mish", 44),  # more work for each element
        ("level2/conv2d_min_tanh_tanh", 12),  # few results are written
        ("level2/conv2d_add_scale_sigmoid_group_norm", 48),  # stages that wait for each other
    ],
)
def test_a_launch_starts_as_many_vector_cores_as_its_work_needs(name: str, cores: int) -> None:
    *_, last = re.findall(r"const uint32_t cores = AtMost\(t.units, (\d+)\);", oracle(suites.find_task(name)).source)
    assert int(last) == cores


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("level1/conv_pointwise_2d", [Convolution]),
        ("level1/conv_standard_1d", [Convolution]),  # filters of one row of the window stay as they are
        ("level2/conv3d_mish_tanh", [Filters, Convolution, Nest]),
        # The filters of a transposed one are turned round.
        (
            "level1/conv_standard_2d_square_input_asymmetric_kernel_dilated_padded",
            [Pad, Filters, Convolution],
        ),
        ("level1/conv_transposed_2d_square_input_square_kernel", [Pad, Turned, Convolution]),
    ],
)
def test_convolutions_of_stride_1_go_line_by_line(name: str, kinds: list[type]) -> None:
    assert kinds_of_stages(name) == kinds


@pytest.mark.parametrize(
    "name",
    [
        "level1/conv_standard_2d_square_input_square_kernel_strided_padded",
        "level1/conv_depthwise_2d_square_input_square_kernel",
        "level2/conv_transpose2d_subtract_tanh",
    ],
)
def test_other_convolutions_keep_their_ways(name: str) -> None:
    assert Convolution not in kinds_of_stages(name)


_CHECK = """\
#include <cstdint>
#include <cstdio>
static uint32_t AtMost(uint32_t n, uint32_t limit) { return n < limit ? n : limit; }
static uint32_t AtLeast(uint32_t n, uint32_t limit) { return n < limit ? limit : n; }
struct Tiling {
    uint32_t batch, inputs, outputs, planes, height, width, planesOut, linesOut, widthOut, depth;
    uint32_t block, rows, span, pitch, step, together, chunk, slab, stays, half, panels, units;
    uint32_t lineBlocks, columnBlocks;
};
"""
_MAIN = """\
static uint32_t seed = 1;
static uint32_t Draw(uint32_t most) { return 1 + (seed = seed * 1664525u + 1013904223u) / 65536 % most; }
int main()
{
    for (uint32_t n = 0; n < 2000; ++n) {
        const uint32_t deep = Draw(3), down = Draw(8), across = Draw(9), hop = Draw(4), wide = Draw(4) == 1;
        Tiling t{};
        t.batch = Draw(20), t.inputs = Draw(150), t.outputs = Draw(300), t.planes = deep + Draw(8) - 1;
        t.linesOut = Draw(70), t.height = t.linesOut + (down - 1) * hop;
        t.widthOut = Draw(wide ? 3000 : 90), t.width = t.widthOut + (across - 1) * Draw(3);
        t.planesOut = t.planes - deep + 1, t.depth = across * t.inputs;
        EvenLines(t, deep, down, hop);
        const uint32_t lines = t.rows + (down - 1) * hop, groups = (lines + t.together - 1) / t.together;
        const uint32_t n0 = t.together * t.pitch, filters = down * t.block * t.chunk;
        const bool whole = t.step == t.width || t.step == t.pitch;
        const bool fits = t.rows && t.chunk % 16 == 0 && t.block % 16 == 0 && t.pitch % 16 == 0 && t.step % 8 == 0 &&
                          t.span <= t.pitch && t.panels * t.chunk >= t.depth && n0 / 16 <= 255 && whole &&
                          (t.together == 1 || t.step == t.pitch) &&
                          t.chunk * n0 <= 8192 && filters <= 8192 &&
                          (t.rows + 2 * t.together - 2) * t.pitch * t.block <= 16384 &&
                          // The last line that is brought to L0B ends within its slab.
                          ((groups * t.together - 1) * t.step + t.pitch) * 16 <= t.slab &&
                          t.chunk / 16 * t.slab + (t.stays ? 0 : filters) <= t.half &&
                          2 * t.half + (t.stays ? deep * down * t.block * ((t.depth + 7) / 8 * 8) : 0) <= 131072 &&
                          t.lineBlocks * t.rows >= t.linesOut && t.columnBlocks * t.span >= t.widthOut;
        if (!fits) {
            std::printf("%u: %u x %u of %u, %u lines of %u\\n", n, down, across, t.inputs, t.linesOut, t.widthOut);
            return 1;
        }
    }
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_host_chooses_lines_that_fit_on_chip(tmp_path: Path) -> None:
    """Sizes are drawn: whatever they are, a choice exists and nothing runs over its memory."""
    (tmp_path / "check.cpp").write_text(_CHECK + LINES + _MAIN)
    subprocess.run(["g++", "-O1", "-o", "check", "check.cpp"], cwd=tmp_path, check=True)
    run = subprocess.run(["./check"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_a_lone_product_starts_no_vector_cores() -> None:
    task = suites.find_task("level1/batched_matrix_multiplication")
    assert "#define ASCENDC_CUBE_ONLY" in oracle(task).source
    assert "KERNEL_TYPE_AIC_ONLY" in oracle(task).source
    assert "CUBE_ONLY" not in fluent(task).source
    assert "CUBE_ONLY" not in oracle(suites.find_task("level2/gemm_add_relu")).source
    # Vector cores share the way to memory where loads take longest.
    assert "CUBE_ONLY" not in oracle(suites.find_task("level1/matmul_with_large_k_dimension")).source


def test_cores_share_long_sums_and_add_their_parts_to_zeros() -> None:
    deep = suites.find_task("level1/matmul_with_large_k_dimension")
    fill, product = lower(deep, expert=True).stages
    assert isinstance(fill, Nest)
    assert not fill.loads
    assert isinstance(product, Either)
    assert product.cube[0].split
    assert oracle(deep).source.count("AscendC::SyncAll();") == 1
    assert "IterateAll(outGm[which * t.m * t.n + row * t.n + column], true)" in oracle(deep).source
    assert "begin" not in fluent(deep).source


def test_dimensions_of_one_need_no_copies() -> None:
    """`einsum` adds and drops them; elements that lie in order are multiplied where they are."""
    name = "level1/four_dim_tensor_matrix_multiplication"
    assert kinds_of_stages(name) == [Either]
    assert len(lower(suites.find_task(name)).stages) == 4  # the apprentice copies


@pytest.mark.slow
def test_an_expert_computes_mish_without_logarithm_and_passes_what_is_not_a_number_on() -> None:
    mish, divergence = (suites.find_task(name) for name in ("level2/matmul_mish_mish", "level1/kl_div_loss"))
    assert "AscendC::Tanh" in fluent(mish).source
    assert "AscendC::Tanh" not in oracle(mish).source
    assert "AscendC::Ln" not in oracle(mish).source
    # A sum over targets t log t is not a number where t is none; only zeros have to be selected.
    assert fluent(divergence).source.count("AscendC::Select") == 4
    assert oracle(divergence).source.count("AscendC::Select") == 2


def test_an_expert_computes_gelu_without_an_error_function() -> None:
    gelu = suites.find_task("level1/gelu")
    assert "AscendC::Erf" in fluent(gelu).source
    assert "AscendC::Erf" not in oracle(gelu).source
    x = np.linspace(-40, 40, 80_001)
    power = np.polynomial.Polynomial(_GELU)(np.minimum(x * x, _GELU_LIMIT)) * x
    exact = torch.nn.functional.gelu(torch.from_numpy(x)).numpy()
    assert np.abs(x / (1 + np.exp(power)) - exact).max() < 8e-8


@pytest.mark.slow
def test_an_expert_computes_gelu_by_one_exponential() -> None:
    gelu = suites.find_task("level1/min_gpt_new_gelu")
    assert "AscendC::Tanh" in fluent(gelu).source
    assert "AscendC::Tanh" not in oracle(gelu).source
    # The factors 0.5 and 2 of a (1 + tanh(u)) / 2 = a / (1 + exp(-2u)) are not multiplied element by element.
    assert oracle(gelu).source.count("AscendC::Muls") == 2


def test_columns_stay_on_chip_where_the_whole_axis_fits() -> None:
    norm, total = (suites.find_task(f"level1/{name}") for name in ("rms_norm", "sum_reduction_over_a_dimension"))
    assert oracle(norm).source.count("if (t.batch < t.axis)") == 2
    assert "if (t.batch < t.axis)" not in oracle(total).source


def test_short_rows_share_instructions() -> None:
    """Each number of a row is spread over a block, so that one instruction takes a vector of every row."""
    norm = lower(suites.find_task("level2/gemm_group_norm_hardtanh"), expert=True).stages[1]
    assert isinstance(norm, Nest)
    kinds = kinds_of(norm)
    assert kinds is not None
    weights = [n for n, step in enumerate(norm.steps) if step.access and not step.access.flat]
    assert len(weights) == 2  # those of the norm; the product adds its bias
    assert all(kinds[n] == "tile" for n in weights)
    source = oracle(suites.find_task("level2/gemm_group_norm_hardtanh")).source
    assert "AscendC::Brcb(spread" in source
    assert source.count("r += some") == 2  # the weights of many rows come with one copy
    assert "AscendC::Brcb" not in oracle(suites.find_task("level1/softmax")).source


def test_a_group_norm_is_one_stage_with_what_comes_before_and_after() -> None:
    assert kinds_of_stages("level2/gemm_group_norm_hardtanh") == [Either, Nest]
    # Seven vectors would need more flags if the next tile were loaded early; the mean behind the norm has one.
    early = "if (unit + 1 < last)"
    assert oracle(suites.find_task("level2/gemm_group_norm_hardtanh")).source.count(early) == 1
    assert oracle(suites.find_task("level2/gemm_batch_norm_gelu_group_norm_mean_relu")).source.count(early) == 1
    # What comes before is computed once for an image, which does not stay on chip between the passes over it.
    stages = lower(suites.find_task("level2/conv2d_group_norm_scale_max_pool_clamp"), expert=True).stages
    bias, norm = (stage for stage in stages[2:4] if isinstance(stage, Nest))
    assert not bias.reductions
    assert any(step.access and step.access.buffer == "scale" for step in norm.steps)


@pytest.mark.slow
def test_groups_of_a_norm_stay_on_chip_and_pass_every_gate(verifier: Verifier) -> None:
    """They are read once: the ring has a quarter more than one group."""
    task = suites.find_task("level1/group_norm")
    assert kinds_of_stages(task.id) == [GroupNorm]
    assert "GroupNorm" not in str(lower(task).stages)
    source = oracle(task).source
    assert source.count("AscendC::DataCopyPad(ring[") == 1
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.slow
def test_an_instance_norm_is_one_stage_with_what_comes_before_and_after() -> None:
    assert kinds_of_stages("level2/conv2d_instance_norm_divide") == [Filters, Convolution, Nest]


@pytest.mark.slow
def test_a_few_functions_are_computed_on_windows_that_do_not_overlap() -> None:
    assert kinds_of_stages("level2/conv2d_avg_pool_sigmoid_sum") == [Filters, Convolution, Nest, Nest]
    assert len(kinds_of_stages("level2/conv2d_tanh_scaling_bias_add_max")) == 4  # the hyperbolic tangent comes first


def test_a_dimension_is_split_without_computing_a_value() -> None:
    channels, groups, rest = sympy.symbols("channels groups rest", integer=True, positive=True)
    dense, bias = (contiguous(name, shape, "float32") for name, shape in (("x", (rest, channels)), ("b", (channels,))))
    total = Map(dense.shape, "float32", "add", (dense, bias))
    parts = (groups, channels / groups)
    view = split(total, 1, parts)
    assert isinstance(view, Map)
    assert view.shape == (rest, *parts)
    assert [each.shape for each in view.arguments if isinstance(each, Value)] == [(rest, *parts), parts]
    assert split(Regrouped(total.shape, "float32", view, 1), 1, parts) is view
    # A reduction over the dimension has no such view.
    assert (
        split(Map(dense.shape, "float32", "sub", (total, Reduce((rest, ONE), "float32", "sum", total, (1,)))), 1, parts)
        is None
    )


def test_rows_share_instructions_where_nothing_is_reduced() -> None:
    """The vector that all rows share is loaded once; what follows it takes all rows of a tile."""
    task = suites.find_task("level2/matmul_add_swish_tanh_gelu_hardtanh")
    assert "AscendC::Exp(work0, work0, rows * t.pitch);" in oracle(task).source
    assert "rows * t.pitch" not in fluent(task).source


def test_a_number_for_each_row_is_loaded_with_the_rows() -> None:
    hinge = lower(suites.find_task("level1/hinge_loss"), expert=True).stages[0]
    assert isinstance(hinge, Nest)
    kinds = kinds_of(hinge)
    assert kinds is not None
    assert "row" in [kinds[n] for n, step in enumerate(hinge.steps) if step.access]


def test_rows_are_reduced_together_where_every_step_goes_with_that() -> None:
    softmax = lower(suites.find_task("level1/softmax"), expert=True).stages[0]
    assert isinstance(softmax, Nest)
    kinds = kinds_of(softmax)
    assert kinds is not None
    assert {"tile", "row"} <= {*kinds}
    assert kinds_of(replace(softmax, longest=LONGEST + 1)) is None
    assert kinds_of(replace(softmax, kept=())) is None
    # A comparison with one number for each row has no instruction.
    mixed = next(
        n
        for n, step in enumerate(softmax.steps)
        if {kinds[a.step] for a in step.arguments if isinstance(a, Ref)} == {"tile", "row"}
    )
    steps = tuple(replace(step, function="gt") if n == mixed else step for n, step in enumerate(softmax.steps))
    assert kinds_of(replace(softmax, steps=steps)) is None


@pytest.mark.parametrize(
    ("name", "suited"),
    [
        ("conv_depthwise_2d_square_input_asymmetric_kernel", True),
        ("average_pooling_2d", True),  # all columns of a window are among the elements of a line
        ("sum_reduction_over_a_dimension", False),
    ],
)
def test_lines_of_windows_are_loaded_once(name: str, suited: bool) -> None:
    nest = lower(suites.find_task(f"level1/{name}"), expert=True).stages[-1]
    assert isinstance(nest, Nest)
    assert suits_windows(nest) == suited


@pytest.mark.parametrize(
    "name",
    [
        "average_pooling_1d",
        "max_pooling_2d",
        "average_pooling_3d",
        "conv_depthwise_2d_asymmetric_input_square_kernel",  # with weights
    ],
)
@pytest.mark.slow
def test_padded_windows_are_one_stage_and_pass_every_gate(name: str, verifier: Verifier) -> None:
    """What is beside an image is not written to memory before."""
    assert kinds_of_stages(f"level1/{name}") == [Pooling]
    task = small(suites.find_task(f"level1/{name}"))
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


def test_windows_that_overlap_are_not_columns_to_reduce_together() -> None:
    """The elements of a window are a few elements apart, not a row."""
    windows = lower(suites.find_task("level1/average_pooling_1d")).stages[-1]
    rows = lower(suites.find_task("level1/sum_reduction_over_a_dimension"), expert=True).stages[-1]
    assert isinstance(windows, Nest)
    assert isinstance(rows, Nest)
    assert windows.reduced
    assert not suits_columns(windows)
    assert suits_columns(rows)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("level1/softmax", "BlockReduceMax"),
        ("level1/sum_reduction_over_a_dimension", "EvenColumns"),
        ("level1/argmin_over_a_dimension", "CMPMODE::EQ"),
        ("level1/conv_depthwise_2d_square_input_asymmetric_kernel", "rows + t.axis - 1"),
        ("level1/average_pooling_2d", "* 5 + t.axis1)"),
    ],
)
@pytest.mark.slow
def test_reductions_of_tiles_pass_every_gate_and_the_apprentice_does_not_write_them(
    name: str, instruction: str, verifier: Verifier
) -> None:
    task = small(suites.find_task(name))
    kernel = oracle(task)
    assert instruction in kernel.source
    assert instruction not in fluent(task).source
    verdict = verifier.verify(kernel, task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("cumprod", {"function": "prod"}),
        ("cumsum_reverse", {"backwards": True}),
        pytest.param("cumsum_exclusive", {"exclusive": True}, marks=pytest.mark.slow),
        ("masked_cumsum", {"factor": "mask"}),
    ],
)
def test_running_results_are_one_stage_and_pass_every_gate(
    name: str, ways: dict[str, object], verifier: Verifier
) -> None:
    """What is reversed, shifted or multiplied before is read where it is."""
    task = small(suites.find_task(f"level1/{name}"))
    stage = lower(task, expert=True).stages[-1]
    assert isinstance(stage, Running)
    assert ways.items() <= vars(stage).items()
    assert oracle(task).source.count("class Kernel") == 1
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


def test_an_oracle_of_one_vector_stage_is_the_apprentice_s_kernel() -> None:
    task = suites.find_task("level1/relu")
    assert oracle(task) == fluent(task)


def test_no_simulated_author_writes_an_expert_s_kernel() -> None:
    task = suites.find_task("level2/conv2d_relu_bias_add")
    kernel = Apprentice("oracle").write(task, (), None, np.random.default_rng(0))
    assert kernel.source.count("<<<") == fluent(task).source.count("<<<")
    assert not any(
        isinstance(stage, Taps | Interleave | Filters | Turned | Pad | Convolution | Running)
        for stage in lower(task).stages
    )


def test_no_zeros_of_a_transposed_convolution_are_multiplied() -> None:
    """Every place of the window is in one phase: nine products of three channels in all, instead of nine for each."""
    plan = lower(suites.find_task("level2/conv_transpose2d_subtract_tanh"), expert=True)
    (taps,) = (stage for stage in plan.stages if isinstance(stage, Taps))
    assert len(taps.phases) == 4
    columns = [int(match[1]) if (match := re.match(r"(\d+) \*", phase.k)) else 1 for phase in taps.phases]
    assert sum(n * len(phase.taps) for n, phase in zip(columns, taps.phases, strict=True)) == 9


def test_the_command_prints_an_expert_s_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    author.add_arguments(parser)
    name = "level2/conv2d_relu_bias_add"
    assert author.run(parser.parse_args(["--task", name, "--expert"])) == 0
    assert capsys.readouterr().out == oracle(suites.find_task(name)).source


def small(task: Task) -> Task:
    """Return the task with the sizes of its public case as those of its timing case."""
    timing = replace(task.timing, sizes=task.public.sizes)
    return replace(task, cases=tuple(timing if case.role == "timing" else case for case in task.cases))


def test_an_expert_s_kernel_passes_every_gate(verifier: Verifier) -> None:
    task = small(suites.find_task("level2/conv_transpose2d_subtract_tanh"))
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.slow
def test_a_convolution_by_lines_passes_every_gate(verifier: Verifier) -> None:
    task = small(suites.find_task("level1/conv_standard_3d_asymmetric_input_asymmetric_kernel"))
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "level1/conv_transposed_2d_square_input_square_kernel",
        "level1/hinge_loss",
        "level1/kl_div_loss",
        "level2/conv2d_mish_mish",
        "level2/conv3d_hardswish_relu_softmax_mean",
        "level2/gemm_group_norm_hardtanh",
        "level1/conv_standard_1d",
        "level1/conv_standard_2d_square_input_asymmetric_kernel_dilated_padded",
        "level1/conv_transposed_1d_asymmetric_input_square_kernel_padded_strided_dilated",
        "level1/conv_transposed_3d_square_input_square_kernel_padded_dilated_strided",
        "level2/conv2d_relu_bias_add",
        "level2/conv_transpose3d_softmax_sigmoid",
        "level2/gemm_add_relu",
        "level1/softmax",
        "level1/rms_norm",
        "level1/sum_reduction_over_a_dimension",
    ],
)
def test_an_expert_is_faster_than_the_apprentice(name: str, verifier: Verifier) -> None:
    """Run by `make test-slow`."""
    task = suites.find_task(name)
    expert, own = (verifier.verify(kernel, task).latency_us for kernel in (oracle(task), fluent(task)))
    assert expert is not None
    assert own is not None
    assert expert < 0.9 * own


@pytest.mark.slow
def test_windows_of_long_rows_fit_on_chip(verifier: Verifier) -> None:
    """Rows are loaded with the elements between the places of a window."""
    task = suites.find_task("level2/matmul_avg_pool_gelu_scale_max")
    case = replace(task.timing, sizes=(("batch", 1024), ("in_features", 16), ("out_features", 8192)))
    signature = task.instance(case).signature
    inputs = Inputs(signature, random_inputs(signature, 0), case=case)
    run = verifier.device.run(verifier.device.build(oracle(task), task), inputs)
    assert run.status == "ok", run.fault
