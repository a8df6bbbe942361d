"""The picker that knows: a yardstick, not a method.

It looks into the simulated author and picks, one after the other, the memory that raises the chance of a good kernel
most. No agent that sees only what it is shown can be expected to do better, one pick at a time; how far another stays
behind it is that agent's regret. It works with the apprentice alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from kernel_gym import plugins, suites
from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.behaviour.foresight import foresee
from kernel_gym.config import EnvConfig
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.prompt_context import GenerationRequest, describe, generation_request
from kernel_gym.errors import ConfigError
from kernel_gym.memory import pages
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task


class OracleAgent(Agent):
    """Greedy on the author's own prospects; generates once no candidate raises them.

    `profile` and `language` are the author's, in a run those of its environment; `draws` is the number of schedules
    that a chance is averaged over. The API pages that the environment adds are taken into account, as they would be
    with the seed's pages and the default embedder. In refining it starts from the fastest, and wants a feasible kernel
    with a move against the bottleneck.
    """

    def __init__(self, seed: int = 0, profile: str = "middle", draws: int = 4, language: str = "ascendc") -> None:
        super().__init__(seed)
        self.author = Apprentice(profile, language)
        self.draws = draws
        self._starts: dict[tuple[str, int], MemoryItem] = {}

    @classmethod
    def options_for(cls, env: EnvConfig) -> dict[str, str]:
        """Profile and language of the run's author."""
        if env.author != "apprentice":
            raise ConfigError(f"what memories do is known of the simulated author only, not of {env.author!r}")
        language = plugins.load("kernel_gym.devices", env.device).language
        known = {"profile": "middle", "language": language, **env.author_options}
        return {name: str(known[name]) for name in ("profile", "language")}

    def act(self, observation: Observation, info: Info) -> int:
        """The candidate with the best prospect, or `K` if none is better than what is picked already."""
        slots = legal_slots(observation)
        if info["start_due"]:
            self.remember_start_points(info)
            return min(slots, key=lambda slot: info["candidates"][slot].latency_us or float("inf"))
        worth = dict(zip(slots, self.success_chances(info, slots), strict=True))
        best = max(slots, key=lambda slot: worth[slot], default=-1)
        return best if best >= 0 and worth[best] > self.success_chance(info, picked(info)) else generate(observation)

    def remember_start_points(self, info: Info) -> None:
        """Remember the start points on offer: later only the id of the chosen one is told."""
        # By task, too: with fresh memory those of other tasks may have the same ids.
        self._starts |= {(info["task"], one.id): one.item for one in info["candidates"] if one.start}

    def success_chances(self, info: Info, slots: Sequence[int]) -> list[float]:
        """The chance of a good kernel with each of these candidates beside what is picked."""
        before = picked(info)
        return [self.success_chance(info, [*before, info["candidates"][slot].item]) for slot in slots]

    def success_chance(self, info: Info, items: Sequence[MemoryItem]) -> float:
        """The chance of a good kernel for the task at hand, shown these items."""
        request = self.request(info, items)
        return foresee(self.author, request.task, request.context, request.start, self.draws).better

    def request(self, info: Info, items: Sequence[MemoryItem]) -> GenerationRequest:
        """Return what the author is asked when these items are picked, API pages included."""
        task, start = _find(info["task"]), self._starts.get((info["task"], info["start"]))
        ranked = _ranked_pages(task, self.author.language)
        # Only the bank knows the start point's children; without them the author may repeat a move.
        return generation_request(task, items, lambda _, code: pages.select_pages(ranked, code), start)


def picked(info: Info) -> list[MemoryItem]:
    """The items that are in the context already, in the order of the picks."""
    by_id: dict[int, Candidate] = {candidate.id: candidate for candidate in info["candidates"]}
    return [by_id[id].item for id in info["picked"]]


@cache
def _find(task: str) -> Task:
    return suites.find_task(task)


@cache
def _seed(language: str) -> MemoryBank:
    bank = MemoryBank(None, StaticEmbedder())
    bank.add(seed_items(language), attempt=False)
    return bank


@cache
def _ranked_pages(task: Task, language: str) -> tuple[MemoryItem, ...]:
    bank = _seed(language)
    found = bank.retrieve(describe(task), len(bank), (Kind.API,), language=language)
    return tuple(one.item for one in found)
