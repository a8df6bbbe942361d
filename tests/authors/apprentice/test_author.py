"""Tests of the apprentice's behaviour: only what the context shows moves the odds of the right spelling."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from exhibits import task
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice, fluent, load_profile, profile_names
from kernel_gym.authors.apprentice.ascendc.schedule import BEST, NAIVE, Schedule, recognised, recorded
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.moves import moves
from kernel_gym.authors.apprentice.behaviour.spelling_odds import SpellingOdds
from kernel_gym.authors.apprentice.prediction import predict
from kernel_gym.authors.conformance import AuthorContract
from kernel_gym.authors.contract import Author, Context, Note, StartPoint
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Kind
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Profile, Uncompilable

SOFTMAX = suites.find_task("level1/softmax")
WORKING = Feasible("Correct.", latency=10.0)
PAGE = Note("api", "ReduceSum of a tensor\nReduceSum(dst, src, work, count): four arguments.")
MISTAKE = "AscendC::ReduceSum(stat, xLocal, count);"
FAILED = Note("trace", MISTAKE, MISTAKE, Uncompilable("expected ';'"))
POINTED = Note("trace", MISTAKE, MISTAKE, Uncompilable("no matching function for call to 'ReduceSum(...)'"))


def _verified(of: Task = SOFTMAX) -> Note:
    source = fluent(of).source
    return Note("trace", source, source, WORKING)


def _probability(*context: Note, profile: str = "middle", idiom: str = "reduce.sum") -> float:
    return SpellingOdds(load_profile(profile), tuple(context), None).estimate(idioms()[idiom]).probability


class TestApprentice(AuthorContract):
    def make(self) -> Author:
        return Apprentice()


@pytest.mark.parametrize("profile", ["weak", "middle", "strong"])
def test_helpful_notes_raise_and_failed_kernels_lower_the_probability(profile: str) -> None:
    alone = _probability(profile=profile)
    assert _probability(FAILED, profile=profile) < alone
    assert alone < _probability(PAGE, profile=profile) < _probability(_verified(), profile=profile)
    assert alone < _probability(POINTED, profile=profile) < _probability(_verified(), profile=profile)


def test_attention_is_limited() -> None:
    noise = Note("practice", "Nothing of use. " * 4000)
    assert _probability() < _probability(PAGE, noise) < _probability(PAGE)
    buried = Note("trace", "x\n" * 20000 + _verified().text, "x\n" * 20000 + _verified().code, WORKING)
    assert _probability(buried) < _probability(_verified())


@pytest.mark.parametrize(
    ("task", "sibling"),
    [
        ("level1/softmax", "level1/log_softmax"),
        ("level1/relu", "level1/sigmoid"),
        ("level2/conv2d_relu_bias_add", "level1/conv_standard_2d_square_input_square_kernel"),
    ],
)
def test_verified_code_helps_most_and_still_does_in_a_full_context(task: str, sibling: str) -> None:
    """Pages help, a verified kernel of a similar task helps more, and four long kernels beside it leave a third."""
    pages = [Note("api", item.text) for item in seed_items("ascendc") if item.kind is Kind.API][:14]
    others = ("level2/conv_transpose3d_softmax_sigmoid", "level2/gemm_scale_batch_norm", "level1/cumsum")
    kernels = [_verified(suites.find_task(name)) for name in (sibling, *others, "level1/max_pooling_2d")]
    contexts = ([], pages, [*pages, kernels[0]], [*pages, *kernels])
    alone, paged, shown, full = (
        predict(Apprentice(), suites.find_task(task), tuple(notes)).feasible for notes in contexts
    )
    assert alone < paged < shown
    assert full > max(paged, shown / 3)


def test_conflicting_spellings_interfere() -> None:
    both = _probability(_verified(), FAILED)
    assert both < _probability(_verified())
    assert _probability() < both


def test_compiled_code_counts_for_idioms_that_a_compiler_checks() -> None:
    source = fluent(SOFTMAX).source
    wrong = Note("trace", source, source, Incorrect("wrong result"))
    assert _probability(wrong, idiom="reduce.sum") > _probability(wrong, idiom="copy.in") - 1e-9
    assert _probability(wrong) > _probability(Note("trace", source, source, Uncompilable("line 1")))


def test_a_stronger_profile_knows_more() -> None:
    assert _probability(profile="weak") < _probability(profile="middle") < _probability(profile="strong")


notes = st.lists(st.sampled_from([PAGE, FAILED, POINTED, _verified()]), max_size=4).map(tuple)


@given(seed=st.integers(0, 2**32 - 1), before=notes, after=notes)
def test_a_context_changes_only_what_it_decides(seed: int, before: Context, after: Context) -> None:
    """A spelling differs between contexts only if its probability crossed the draw, which is the same for both."""
    author = Apprentice()
    first = author.explain(SOFTMAX, before, None, np.random.default_rng(seed))
    second = author.explain(SOFTMAX, after, None, np.random.default_rng(seed))
    others = {choice.idiom: choice for choice in second.choices}
    for choice in first.choices:
        other = others.get(choice.idiom)
        if other is not None:
            assert choice.draw == other.draw
            low, high = sorted((choice.estimate.probability, other.estimate.probability))
            assert (choice.right != other.right) == (low <= choice.draw < high)


@given(seed=st.integers(0, 2**32 - 1), context=notes, refining=st.booleans())
def test_placebo_ignores_what_it_is_shown(seed: int, context: Context, refining: bool) -> None:
    author = Apprentice("placebo")
    start = _start(Schedule(cores=8), "mte2") if refining else None
    shown = author.write(SOFTMAX, context, start, np.random.default_rng(seed))
    assert shown == author.write(SOFTMAX, (), None, np.random.default_rng(seed))


def test_placebo_is_the_middle_author_but_for_its_reading() -> None:
    differing = {"name", "about", "reads", "skill"}
    placebo, middle = (load_profile(name).model_dump(exclude=differing) for name in ("placebo", "middle"))
    assert placebo == middle


@pytest.mark.slow
def test_placebo_is_right_as_often_as_the_middle_author_with_random_contexts() -> None:
    script = ROOT / "scripts" / "placebo.py"
    done = subprocess.run([sys.executable, script, "--json"], capture_output=True, text=True, check=True)
    assert load_profile("placebo").skill == pytest.approx(json.loads(done.stdout)["skill"], abs=0.05)


# ---- sampled authors -----------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), base=st.sampled_from(["weak", "middle", "strong", "placebo"]))
def test_sampled_authors_are_near_their_base_and_repeatable(seed: int, base: str) -> None:
    drawn, around = load_profile(f"{base}~{seed}"), load_profile(base)
    assert drawn == around.sampled(seed)
    assert (drawn.reads, drawn.fluent, drawn.name) == (around.reads, around.fluent, f"{base}~{seed}")
    assert abs(drawn.skill - around.skill) <= 1
    assert 0.5 <= drawn.verified / around.verified <= 2
    assert 1 / 3 - 1e-9 <= drawn.span / around.span <= 3 + 1e-9
    assert 0 < drawn.care < 1


def test_sampled_authors_have_different_identities() -> None:
    identities = {Apprentice(name).identity() for name in ("middle", "middle~1", "middle~2", "weak~1")}
    assert len(identities) == 4
    with pytest.raises(ConfigError, match="such as middle~7"):
        Apprentice("middle~one")
    with pytest.raises(ConfigError, match="unknown author profile 'clever'"):
        Apprentice("clever~1")


def test_every_constant_of_a_profile_is_sampled() -> None:
    drawn, around = load_profile("middle~3").model_dump(), load_profile("middle").model_dump()
    same = {name for name in drawn if drawn[name] == around[name]}
    mechanisms_of_fitted_profiles = {"person", "belief", "grasp", "inertia", "skeleton"}
    mechanisms_of_fitted_profiles |= {"formula", "boundary", "precision", "axis"}
    assert same == {"reads", "fluent"} | mechanisms_of_fitted_profiles


def test_the_oracle_profile_makes_no_mistakes() -> None:
    kernel = Apprentice("oracle").write(SOFTMAX, (FAILED,), None, np.random.default_rng(0))
    assert kernel == fluent(SOFTMAX)
    assert kernel.trusted


def test_profiles_have_different_identities() -> None:
    identities = {Apprentice(name).identity() for name in profile_names()}
    assert len(identities) == len(profile_names()) >= 5
    with pytest.raises(ConfigError, match="unknown author profile 'clever'"):
        Apprentice("clever")


def test_a_task_that_cannot_be_lowered_gives_no_kernel() -> None:
    odd = task("odd", "torch.fft.rfft(x).abs()")
    explanation = Apprentice().explain(odd, (), None, np.random.default_rng(0))
    assert explanation.kernel.source == ""
    assert explanation.problem.startswith("Unsupported: aten.")


# ---- refining ------------------------------------------------------------------------------------------------------


def test_a_kernel_says_its_schedule() -> None:
    for schedule in (BEST, NAIVE, Schedule(cores=8, tile=1024, buffers=1)):
        assert recorded(f"// a kernel\n{schedule.comment()}\n#include") == schedule
    assert recorded("no such line") is None


def test_the_schedule_of_a_foreign_kernel_is_recognised() -> None:
    source = """
    pipe.InitBuffer(inQueueX, 2, TILE_LENGTH * sizeof(float));
    for (int i = 0; i < n; ++i) { y.SetValue(i, x.GetValue(i)); }
    constexpr int TILE_LENGTH = 512;
    add<<<16, nullptr, stream>>>(x, y);
    """
    schedule = recognised(source)
    assert (schedule.cores, schedule.tile, schedule.buffers, schedule.vector) == (16, 512, 2, False)


def _start(schedule: Schedule, bottleneck: str) -> StartPoint:
    source = f"{schedule.comment()}\n{fluent(SOFTMAX).source}"
    return StartPoint(Kernel(source), Feasible("Correct.", latency=9.0, profile=Profile(bottleneck=bottleneck)))


def _moves_taken(start: StartPoint, context: Context = (), attempts: int = 60) -> list[str]:
    author = Apprentice()
    taken: list[str] = []
    for seed in range(attempts):
        explanation = author.explain(SOFTMAX, context, start, np.random.default_rng(seed))
        assert explanation.schedule_choice is not None
        taken += explanation.schedule_choice.moves
        assert recorded(explanation.kernel.source) != recorded(start.kernel.source)
    return taken


def test_moves_follow_the_bottleneck() -> None:
    start = Schedule(cores=8, tile=256, buffers=1, batch=1)
    assert _moves_taken(_start(start, "launch")).count("fewer-cores") > _moves_taken(_start(start, "mte2")).count(
        "fewer-cores"
    )
    assert _moves_taken(_start(start, "balance")).count("cores") > _moves_taken(_start(start, "launch")).count("cores")


def test_moves_follow_the_context() -> None:
    start = _start(Schedule(cores=8, tile=256, buffers=1, batch=1), "")
    practice = Note("practice", "Double buffering: two buffers let the next copy run meanwhile.")
    assert _moves_taken(start, (practice,)).count("buffers") > _moves_taken(start).count("buffers")


def test_refining_keeps_most_of_what_worked() -> None:
    start = _start(Schedule(cores=8, tile=256, buffers=1), "mte2")
    author = Apprentice()
    attempts = [author.explain(SOFTMAX, (), start, np.random.default_rng(seed)).choices for seed in range(40)]
    wrong = sum(not choice.right for choices in attempts for choice in choices)
    total = sum(len(choices) for choices in attempts)
    assert 0 < wrong < 0.15 * total


def test_ladders_are_of_fields_of_the_schedule() -> None:
    for move in moves():
        for rung in range(len(move.ladder)):
            assert int(getattr(move.at(BEST, rung), move.field)) == move.ladder[rung]
        for risk in move.risks:
            assert risk in idioms()
