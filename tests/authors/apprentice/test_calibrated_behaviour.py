"""Tests of persistent beliefs, misreadings, repair and skeletons of the simulated author."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.author import oracle
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.misreading import KINDS, misread
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile
from kernel_gym.authors.apprentice.behaviour.reading import shows
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.authors.contract import Note, StartPoint
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Uncompilable

GELU = "level1/gelu"


@pytest.fixture
def task() -> Task:
    return suites.find_task(GELU)


@pytest.fixture(scope="module")
def verifier():
    from kernel_gym.hardware.ascend_sim.device import AscendSim
    from kernel_gym.verifier import Verifier

    with Verifier(AscendSim()) as verifier:
        yield verifier


def author(language: str = "ascendc", **constants: object) -> Apprentice:
    return Apprentice(Profile(name="test", **constants), language)


def attempt(writer: Apprentice, task: Task, start: StartPoint | None = None, seed: int = 0, context=()):
    return writer.explain(task, context, start, np.random.default_rng(seed))


def wrong(explanation) -> set[str]:
    return {choice.idiom for choice in explanation.choices if not choice.right}


class TestBelief:
    def test_one_author_believes_the_same_in_every_attempt_and_task(self):
        profile = Profile(name="test", belief=2.0, person=3)
        assert profile.own_offset("copy.in", "gelu") == profile.own_offset("copy.in", "relu") != 0

    def test_grasp_is_a_matter_of_the_task(self):
        profile = Profile(name="test", grasp=2.0, person=3)
        assert profile.own_offset("copy.in", "gelu") == profile.own_offset("copy.out", "gelu")
        assert profile.own_offset("copy.in", "gelu") != profile.own_offset("copy.in", "relu")

    def test_persons_differ_and_have_the_stated_spread(self):
        offsets = [Profile(name="t", belief=2.0, person=n).own_offset("copy.in", "") for n in range(400)]
        assert np.std(offsets) == pytest.approx(2.0, rel=0.12)
        assert np.mean(offsets) == pytest.approx(0.0, abs=0.35)

    @pytest.mark.parametrize("language", ["ascendc", "cuda"])
    def test_mistakes_come_again(self, task, language):
        """Two attempts of one author share more mistakes than attempts of two authors."""
        first, second = (author(language, belief=4.0, skill=-1.0, person=n) for n in (1, 2))
        own = wrong(attempt(first, task, seed=0)) ^ wrong(attempt(first, task, seed=1))
        others = wrong(attempt(first, task, seed=0)) ^ wrong(attempt(second, task, seed=1))
        assert len(own) < len(others)


class TestMisreading:
    @pytest.mark.parametrize("language", ["ascendc", "cuda"])
    @pytest.mark.parametrize(
        ("constant", "idiom", "name"),
        [
            ("formula", "meaning.formula", GELU),
            ("boundary", "meaning.boundary", GELU),
            ("precision", "meaning.precision", GELU),
            ("axis", "axis.stride", "level1/sum_reduction_over_a_dimension"),
        ],
    )
    def test_each_kind_of_wrong_values_has_a_constant_of_its_own(self, language, constant, idiom, name):
        certain = dict.fromkeys(("formula", "boundary", "precision", "axis"), 50.0)
        subject = suites.find_task(name)
        assert wrong(attempt(author(language, skill=50.0, **certain), subject)) == set()
        assert wrong(attempt(author(language, skill=50.0, **certain | {constant: -50.0}), subject)) == {idiom}

    def test_profiles_of_before_never_misread(self, task):
        assert Apprentice("weak").misreadings(lower(task)) == ()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("language", ["ascendc", "cuda"])
    def test_the_kernel_is_another_one(self, task, kind, language):
        writer = backend(language)
        plan = lower(task)
        texts = [
            writer.write(each, writer.schedules.best, always_right(writer.idioms))
            for each in (plan, misread(plan, kind))
        ]
        assert texts[0] != texts[1]

    def test_a_plan_without_constants_has_none_to_round(self):
        assert misread(lower(suites.find_task("level1/relu")), "precision") is None

    def test_both_ways_to_compute_a_product_are_misread(self):
        plan = lower(suites.find_task("level1/square_matrix_multiplication"))
        stage, other = plan.stages[0], misread(plan, "boundary").stages[0]
        assert stage.cube != other.cube
        assert stage.vector != other.vector

    def test_an_author_that_always_misreads_does(self, task):
        explanation = attempt(author(formula=-50.0), task)
        assert "meaning.formula" in wrong(explanation)
        assert explanation.kernel.source != attempt(author(formula=50.0), task).kernel.source

    def test_a_verified_kernel_of_the_task_shows_its_meaning(self, task):
        source = oracle(task).source
        own = Note("trace", source, source, Feasible("Correct.", latency=1.0), same_task=True)
        other = Note("trace", source, source, Feasible("Correct.", latency=1.0))
        odds = [_meaning_odds(author(formula=0.0), task, (note,)) for note in (own, other)]
        assert odds[0] > 0.9
        assert odds[1] == pytest.approx(0.5)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", [GELU, "level1/softmax", "level1/cumsum", "level1/square_matrix_multiplication"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_verifier_finds_wrong_values(self, name, kind, verifier):
        task = suites.find_task(name)
        plan, writer = misread(lower(task), kind), backend("ascendc")
        if plan is None:
            pytest.skip("cannot be misread so")
        source = writer.write(plan, writer.schedules.best, always_right(writer.idioms))
        verdict = verifier.verify(Kernel(source, "ascendc"), task)
        assert isinstance(verdict, Incorrect)
        assert verdict.cause == "mismatch"


def _meaning_odds(writer: Apprentice, task: Task, context) -> float:
    (choice,) = [c for c in attempt(writer, task, context=context).choices if c.idiom == "meaning.formula"]
    return choice.estimate.probability


class TestRepair:
    def test_what_is_right_is_copied_and_the_schedule_kept(self, task):
        start = StartPoint(oracle(task), Uncompilable("error: something unheard of"))
        explanation = attempt(author(skill=-50.0, copying=1.0, ambition=-50.0), task, start)
        assert explanation.kernel.source.split("\n")[1] == start.kernel.source.split("\n")[1]
        patterns = {c.idiom: idioms()[c.idiom].right.pattern for c in explanation.choices}
        shown = {idiom for idiom, pattern in patterns.items() if pattern and pattern.search(start.kernel.source)}
        assert {"copy.in", "copy.out", "buffer.init"} <= shown
        assert not shown & wrong(explanation)

    def test_a_mistake_that_the_message_points_at_is_mended_and_another_is_not(self, task):
        broken = attempt(author(skill=-50.0, ambition=-50.0), task)
        assert "queue.alloc" in wrong(broken)
        start = StartPoint(broken.kernel, Uncompilable("error: no member named 'AllocTensor' in 'TPipe'"))
        explanation = attempt(author(hinted=100.0, inertia=1.0, skill=-50.0), task, start)
        assert "queue.alloc" not in wrong(explanation)
        looks_right = {name for name in wrong(broken) if shows(idioms()[name].right.pattern, broken.kernel.source)}
        assert wrong(explanation) >= wrong(broken) - looks_right - _named(start.verdict.feedback)

    def test_cuda_is_mended_alike(self):
        softmax = suites.find_task("level1/softmax")
        start = StartPoint(oracle(softmax, "cuda"), Uncompilable("error: something unheard of"))
        kept = wrong(attempt(author("cuda", skill=-50.0, copying=1.0, ambition=-50.0), softmax, start))
        assert not {name for name in kept if idioms("cuda")[name].right.pattern}
        broken = attempt(author("cuda", skill=-50.0, ambition=-50.0), softmax)
        message = "error: a __global__ function must have a void return type"
        named = {i.id for i in idioms("cuda").values() if i.symptom_pattern and i.symptom_pattern.search(message)}
        assert named & wrong(broken)
        start = StartPoint(broken.kernel, Uncompilable(message))
        mended = wrong(attempt(author("cuda", hinted=100.0, inertia=1.0, skill=-50.0), softmax, start))
        assert not named & mended
        right = {name for name in wrong(broken) if shows(idioms("cuda")[name].right.pattern, broken.kernel.source)}
        assert mended >= wrong(broken) - right - named

    def test_a_task_is_not_read_again(self, task):
        start = StartPoint(oracle(task), Uncompilable("error"))
        readings = {"meaning.formula" in wrong(attempt(author(formula=0.0), task, start, seed)) for seed in range(8)}
        assert len(readings) == 1

    def test_wrong_values_make_it_read_again(self, task):
        start = StartPoint(oracle(task), Incorrect("7 of 96 values differ", cause="mismatch"))
        assert "meaning.formula" not in wrong(attempt(author(formula=-1.0, hinted=100.0), task, start))


def _named(feedback: str) -> set[str]:
    return {idiom.id for idiom in idioms().values() if idiom.symptom_pattern and idiom.symptom_pattern.search(feedback)}


class TestSkeleton:
    @pytest.mark.parametrize("language", ["ascendc", "cuda"])
    def test_a_verified_kernel_is_taken_over(self, task, language):
        source = oracle(task, language).source
        note = Note("trace", source, source, Feasible("Correct.", latency=1.0))
        constants = {"skill": -50.0, "verified": 0.0, "shown": 0.0, "compiled": 0.0, "copying": 1.0}
        without = wrong(attempt(author(language, **constants), task, context=(note,)))
        taken = wrong(attempt(author(language, skeleton=1.0, **constants), task, context=(note,)))
        assert len(taken) < len(without)

    def test_a_failed_kernel_is_not(self, task):
        source = oracle(task).source
        note = Note("trace", source, source, Uncompilable("error"))
        constants = {"skill": -2.0, "copying": 1.0}
        assert wrong(attempt(author(skeleton=1.0, **constants), task, context=(note,))) == wrong(
            attempt(author(**constants), task, context=(note,))
        )


class TestMembers:
    def test_a_file_with_members_gives_authors_of_their_own(self, tmp_path):
        file = tmp_path / "mine.yaml"
        file.write_text("skill: -1.0\nbelief: 1.0\nmembers: [{skill: -1.0}, {skill: -2.0}]\n")
        profiles = [load_profile(f"{file}~{number}") for number in range(3)]
        assert [profile.skill for profile in profiles] == [-1.0, -2.0, -1.0]
        assert [profile.person for profile in profiles] == [0, 1, 2]
        assert load_profile(str(file)).name == "mine"
