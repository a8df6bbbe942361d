"""Tests of the Ascend C idioms: every wrong spelling has its declared effect, every spelling is recognised in text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from exhibits import exhibit, with_mistake, without_mistake

from kernel_gym.authors.apprentice.behaviour.idioms import Count, Idiom, Spelling, counts, idioms
from kernel_gym.authors.apprentice.behaviour.reading import read_note
from kernel_gym.authors.contract import Note
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.memory.seed import seed_items
from kernel_gym.verdict import Incorrect, Verdict
from kernel_gym.verifier import Verifier

#: Mistakes whose kernels take seconds.
LONG = ("matmul.include:short-name", "matmul.core-type:mixed")
MISTAKES = [
    pytest.param(idiom, spelling, id=name, marks=[pytest.mark.slow] if name in LONG else [])
    for idiom in idioms().values()
    for spelling in idiom.wrong
    for name in [f"{idiom.id}:{spelling.name}"]
]
ALL = [pytest.param(idiom, id=idiom.id) for idiom in idioms().values()]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


def _effect(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome


@pytest.mark.parametrize(("idiom", "mistake"), MISTAKES)
@pytest.mark.slow
def test_a_mistake_has_its_declared_effect(idiom: Idiom, mistake: Spelling, verifier: Verifier) -> None:
    verdict = verifier.verify(*with_mistake(idiom, mistake))
    declared = idiom.effect_of(mistake)
    if declared == "slow":
        right = verifier.verify(*without_mistake(idiom))
        assert verdict.latency_us is not None
        assert right.latency_us is not None
        assert verdict.latency_us > right.latency_us
    else:
        assert _effect(verdict) == declared, verdict.feedback


@pytest.mark.parametrize("idiom", ALL)
def test_the_right_spelling_is_recognised_in_a_kernel_that_uses_it(idiom: Idiom) -> None:
    kernel, _ = without_mistake(idiom)
    sight = read_note(Note("trace", kernel.source, kernel.source)).sights[idiom.id]
    assert sight.right
    assert not sight.wrong or idiom.id in OVERLAPPING


#: Idioms whose mistake is a legal spelling elsewhere.
OVERLAPPING: frozenset[str] = frozenset()


@pytest.mark.parametrize(("idiom", "mistake"), MISTAKES)
def test_a_mistake_is_recognised_where_it_leaves_a_trace(idiom: Idiom, mistake: Spelling) -> None:
    if not mistake.seen and not mistake.when:
        pytest.skip("leaves no trace in the text")
    kernel, _ = with_mistake(idiom, mistake)
    assert read_note(Note("trace", kernel.source, kernel.source)).sights[idiom.id].wrong


@pytest.mark.parametrize("idiom", [param for param in ALL if param.values[0].teaches])  # type: ignore[union-attr]
def test_every_idiom_has_a_page(idiom: Idiom) -> None:
    """The seed knowledge has a page on every API that teaches an idiom."""
    pages = [item for item in seed_items("ascendc") if item.kind == "api"]
    taught = [
        page for page in pages if (sight := read_note(Note("api", page.text)).sights.get(idiom.id)) and sight.taught
    ]
    assert taught


# ---- counted mistakes ------------------------------------------------------------------------------------------------


def test_the_counted_mistakes_are_those_that_three_attempts_made() -> None:
    assert len(counts()) == 60
    assert min(count.attempts for count in counts()) == 3
    assert {count.gate for count in counts()} == {"uncompilable", "fault"}


@pytest.mark.parametrize("count", [pytest.param(count, id=f"{count.said}:{count.of[:24]}") for count in counts()])
def test_a_counted_mistake_ends_at_the_gate_of_the_counted_attempts(count: Count, verifier: Verifier) -> None:
    name, _, spelled = count.spelling.partition(":")
    mistake = next(spelling for spelling in idioms()[name].wrong if spelling.name == spelled)
    verdict = verifier.verify(*with_mistake(idioms()[name], mistake))
    assert _effect(verdict) == count.gate == idioms()[name].effect_of(mistake), verdict.feedback
    if count.said in ("no such name", "no such overload", "no such member"):
        api_name = count.of.replace(".", "::").rpartition("::")[2]
        assert api_name.lower() in f"{verdict.feedback} {mistake.seen}".lower()


def test_a_prior_counts_no_fewer_mistakes_than_were_counted() -> None:
    for idiom in idioms().values():
        if idiom.prior.errors is not None:
            seen = sum(count.attempts for count in counts() if count.spelling.partition(":")[0] == idiom.id)
            assert idiom.prior.errors >= seen, idiom.id


def test_every_idiom_is_shown_by_an_exhibit() -> None:
    for name in idioms():
        assert exhibit(name)


def test_priors_are_probabilities_and_say_where_they_come_from() -> None:
    for idiom in idioms().values():
        assert 0 < idiom.prior.probability < 1, idiom.id
        assert (idiom.prior.guess is None) != (idiom.prior.errors is None), idiom.id
