"""Options of the protocol: the last attempt offered to be mended, and which API pages follow the picks."""

from typing import Any

import numpy as np
import pytest

from kernel_gym.agents.pass_at_k import PassAtKAgent
from kernel_gym.agents.refinement import RefinementAgent
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.demonstration import demonstration
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.pool import PoolRequest, similar
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.envs.vector import KernelSynthesisVectorEnv
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.experience import experience
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Incorrect, Uncompilable

K = 12


def generate(env: Any, times: int = 1) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for _ in range(times):
        *_, info = env.step(np.int64(K))
    return info


def test_without_the_option_no_attempt_is_offered(make: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("wrong")
    env = make(author=author)
    env.reset(seed=0)
    assert not generate(env, 3)["start_due"]
    assert [start for _, _, start, _ in author.asked] == [None, None, None]


def test_a_failed_attempt_is_offered_and_mended(make: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("wrong here", "wrong there", "latency 5.0")
    env = make(author=author, repair=True)
    _, info = env.reset(seed=0)
    assert not info["start_due"]
    first = generate(env)
    assert (first["stage"], first["start_due"], first["picks_left"]) == (Stage.DRAFT, True, 3)
    (offered,) = first["candidates"]
    assert (offered.id, offered.kind, offered.item.code, offered.children) == (
        first["attempt"].produced[0],
        "start",
        "wrong here",
        (),
    )
    assert env.action_masks().nonzero()[0].tolist() == [0, K]

    *_, info = env.step(np.int64(0))
    assert (info["start"], info["start_due"]) == (offered.id, False)
    assert offered.id not in {candidate.id for candidate in info["candidates"]}
    *_, picked = env.step(np.int64(0))
    second = generate(env)
    _, context, start, _ = author.asked[1]
    assert start.kernel.source == "wrong here"
    assert not start.verdict.feasible
    assert [note.text for note in context] == [picked["candidates"][0].item.text]
    attempt = second["attempt"]
    assert (attempt.stage, attempt.start, attempt.reward) == (Stage.DRAFT, offered.id, -1.0)
    trace = env.bank.get(attempt.produced[0])
    assert trace.parent == offered.id
    assert trace.title == "some/task-0, repaired, incorrect: `wrong here` -> `wrong there`"

    assert second["candidates"][0].item.code == "wrong there"  # the last attempt, not the first
    third = [env.step(np.int64(action)) for action in (0, K)][-1][4]
    assert third["attempt"].verdict.feasible
    assert third["stage"] is Stage.REFINE
    assert env.action_masks().nonzero()[0].tolist() == [0]  # in refining the start point must be chosen
    outcomes = env.bank.look_up([offered.id], "")[0].outcomes[Stage.DRAFT]
    assert (outcomes.uses, outcomes.mean) == (1, -1.0)


@pytest.mark.parametrize("action", [K, 5])
def test_an_offer_is_declined_by_generating_or_by_a_masked_action(make: Any, stand_ins: Any, action: int) -> None:
    author = stand_ins.Listed("wrong")
    env = make(author=author, repair=True)
    env.reset(seed=0)
    generate(env)
    *_, info = env.step(np.int64(action))
    assert "attempt" not in info
    assert (info["start"], info["picks_left"], info["stage"]) == (0, 3, Stage.DRAFT)
    assert generate(env)["attempt"].start is None
    assert author.asked[1][2] is None


def test_an_empty_answer_is_not_offered(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed(""), repair=True)
    env.reset(seed=0)
    assert not generate(env)["start_due"]


def test_a_new_episode_begins_without_an_offer(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong"), repair=True, budget=1)
    env.reset(seed=0)
    assert not generate(env)["start_due"]  # the episode is over
    assert not env.reset()[1]["start_due"]


def test_frozen_memory_offers_the_last_attempt_and_shows_it_nowhere_else(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong here", "wrong there"), repair=True, memory="frozen")
    env.reset(seed=0)
    before = len(env.bank)
    (offered,) = generate(env)["candidates"]
    assert len(env.bank) == before + 1
    *_, info = env.step(np.int64(0))
    assert info["start"] == offered.id
    assert all(candidate.id <= before for candidate in info["candidates"])


def test_the_vector_form_offers_what_the_single_form_does(stand_ins: Any) -> None:
    options = {"tasks": stand_ins.tasks(2), "author": stand_ins.Listed("wrong"), "repair": True}
    envs = KernelSynthesisVectorEnv(num_envs=2, **stand_ins.parts(**options))
    envs.reset(seed=0)
    *_, infos = envs.step(np.array([K, K]))
    assert infos["start_due"].tolist() == [True, True]
    envs.step(np.array([0, K]))  # the first mends, the second drafts anew
    *_, infos = envs.step(np.array([K, K]))
    assert [attempt.start for attempt in infos["attempt"]] == [infos["attempt"][0].start, None]
    assert envs.bank.get(infos["attempt"][0].start).task == "some/task-0"
    envs.close()


def test_the_baselines_keep_their_rules(make: Any, stand_ins: Any) -> None:
    """pass@k drafts anew; refinement mends the last attempt and shows nothing else."""

    def starts(agent: Any) -> list[tuple[Any, ...]]:
        env = make(author=stand_ins.Listed("wrong 1", "wrong 2", "wrong 3", "latency 1.0"), repair=True)
        return [(attempt.start, attempt.context) for attempt in play(env, agent, 4, seed=0)]

    assert starts(PassAtKAgent()) == [(None, ())] * 4
    (first, _), *repairs = starts(RefinementAgent())
    assert first is None
    assert all(start is not None and context == () for start, context in repairs)
    assert len(set(repairs)) == 3


def language_page(number: int, category: str = "") -> MemoryItem:
    name = f"Api{number}"
    return MemoryItem(Kind.API, name, f"{name}: does it", names=(name,), category=category, language="text")


def pages_shown(make: Any, stand_ins: Any, pages: str) -> tuple[list[str], tuple[int, ...]]:
    author, bank = stand_ins.Listed("wrong"), stand_ins.bank()
    bank.add([language_page(0, "language"), language_page(1)], attempt=False)
    env = make(author=author, bank=bank, pages=pages)
    env.reset(seed=0)
    attempt = generate(env)["attempt"]
    return [note.text for note in author.asked[0][1]], attempt.api_pages


def test_the_pages_of_a_context_are_an_option(make: Any, stand_ins: Any) -> None:
    assert pages_shown(make, stand_ins, "all") == (["Api0: does it", "Api1: does it"], (31, 32))
    assert pages_shown(make, stand_ins, "basics") == (["Api0: does it"], (31,))
    assert pages_shown(make, stand_ins, "none") == ([], ())
    with pytest.raises(ConfigError, match="no demonstration for 'text'"):
        pages_shown(make, stand_ins, "demonstration")
    with pytest.raises(ConfigError, match="pages is one of all, basics, none, demonstration"):
        make(pages="some")


def test_a_demonstration_takes_the_place_of_the_pages(stand_ins: Any) -> None:
    author = stand_ins.Listed("wrong")
    author.language = "ascendc"
    env = KernelSynthesisEnv(tasks=["level1/relu"], author=author, pages="demonstration", operators=lambda task: ())
    env.reset(seed=0)
    request = env._episode.request()
    assert request.context == (demonstration("ascendc"),)
    assert request.context[0].verdict.feasible
    assert "kernel_launch" in request.context[0].code
    assert request.api_pages == ()
    env.close()


def by_kind(bank: Any, drafted: str) -> set[tuple[str, str]]:
    request = PoolRequest("some/task-0", 50, "text", drafted=drafted)
    return {(one.item.kind.value, one.item.task) for one in similar(bank, request, "by-kind")}


def test_pools_by_kind_have_what_the_paper_shows(stand_ins: Any) -> None:
    """In drafting traces of other tasks and experiences of any; in refining everything."""
    bank = stand_ins.bank()
    for task in ("some/task-0", "some/task-1"):
        new = MemoryItem(Kind.TRACE, task, f"{task} wrong", "wrong", Incorrect("no"), task, language="text")
        bank.add([new, experience(new)])
    drafting = {("trace", "some/task-1"), ("experience", "some/task-0"), ("experience", "some/task-1")}
    assert by_kind(bank, "some/task-0") == drafting
    assert by_kind(bank, "") == drafting | {("trace", "some/task-0"), ("practice", "")}


@pytest.mark.parametrize("repair", [False, True])
def test_pools_by_kind_are_those_of_the_live_environment(repair: bool) -> None:
    options: dict[str, Any] = {"tasks": ["level1/relu", "level1/gelu"], "budget": 3, "composition": "by-kind"}
    options |= {"author_options": {"profile": Profile(name="helpless", skill=-3.0)}, "repair": repair}
    live = KernelSynthesisVectorEnv(2, verifier=Refusing(), **options)
    forecast = ForecastVectorEnv(2, **options)
    for envs in (live, forecast):
        envs.reset(seed=3)
    generate_all = np.full(2, forecast.options.slots)
    for _ in range(1 + repair):
        (*_, infos), (*_, told) = (envs.step(generate_all) for envs in (live, forecast))
    pools = [{(one.item.kind, one.item.task) for one in pool} for pool in told["candidates"]]
    assert pools == [{(one.item.kind, one.item.task) for one in pool} for pool in infos["candidates"]]
    assert ("trace", "level1/relu") not in pools[0] >= {("trace", "level1/gelu"), ("experience", "level1/relu")}
    live.close()


class Refusing:
    """A verifier that refuses every kernel."""

    def verify(self, kernel: Kernel, task: Task) -> Uncompilable:
        return Uncompilable("line 3: refused | x")
