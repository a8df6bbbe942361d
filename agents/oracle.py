"""Show the author the best picks by the simulated author's own probabilities: an upper reference, not a method.

Rule: ours. The agent reads the probabilities inside the apprentice and picks, one after the other, the candidate that
raises the chance of a good kernel most. An agent that reads only its observation cannot be expected to do better, one
pick at a time, so the distance to the oracle is an agent's regret. It works with the apprentice only. Options of
`OracleAgent`: `profile`, `draws`, `language` and `pages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from kernel_gym import plugins, suites
from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.prediction import predict
from kernel_gym.config import EnvConfig
from kernel_gym.envs.options import Pages
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.prompt_context import GenerationRequest, describe, generation_request
from kernel_gym.errors import ConfigError
from kernel_gym.memory import api_pages
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task


class OracleAgent(Agent):
    """Pick greedily by the author's own chance of success; generate once no candidate raises it.

    The API pages that the environment adds are taken into account, as with the seed knowledge and the default embedder.
    In refining the start point is the fastest one, and success is a feasible kernel with a move against the bottleneck.

    Args:
        seed: Not used: the rule is deterministic.
        profile: The author profile; in a run that of its environment.
        draws: Schedules that a chance is averaged over.
        language: The author's language; in a run that of its device.
        pages: The API pages of a context; in a run those of its environment.
    """

    def __init__(
        self,
        seed: int = 0,
        profile: str = "middle",
        draws: int = 4,
        language: str = "ascendc",
        pages: Pages = "all",
    ) -> None:
        super().__init__(seed)
        self.author = Apprentice(profile, language)
        self.draws, self.pages = draws, pages
        self._starts: dict[tuple[str, int], MemoryItem] = {}

    @classmethod
    def options_for(cls, env: EnvConfig) -> dict[str, Any]:
        """Return profile and language of the run's author, and which API pages it is shown.

        Raises:
            ConfigError: If the run's author is not the apprentice.
        """
        if env.author != "apprentice":
            raise ConfigError(
                f"the oracle works with the simulated author only: use author=apprentice, not {env.author!r}"
            )
        language = plugins.load("kernel_gym.devices", env.device).language
        options = {"profile": "middle", "language": language, **env.author_options, "pages": env.pages}
        return {name: str(options[name]) for name in ("profile", "language", "pages")}

    def act(self, observation: Observation, info: Info) -> int:
        """Return the candidate that raises the chance of success most, or "generate now" if none raises it."""
        slots = legal_slots(observation)
        if info["draft_due"]:
            return slots[0]
        if info["start_due"]:
            self.remember_start_points(info)
            return min(slots, key=lambda slot: info["candidates"][slot].latency_us or float("inf"))
        chances = dict(zip(slots, self.success_chances(info, slots), strict=True))
        best = max(slots, key=lambda slot: chances[slot], default=-1)
        better = best >= 0 and chances[best] > self.success_chance(info, picked_items(info))
        return best if better else generate(observation)

    def remember_start_points(self, info: Info) -> None:
        """Store the start points on offer: after the pick `info` has only the id of the chosen one."""
        # By task, too: with fresh memory those of other tasks may have the same ids.
        starts = (candidate for candidate in info["candidates"] if candidate.start)
        self._starts |= {(info["task"], candidate.id): candidate.item for candidate in starts}

    def success_chances(self, info: Info, slots: Sequence[int]) -> list[float]:
        """Return the chance of success with each of these candidates added to the picks."""
        picked = picked_items(info)
        return [self.success_chance(info, [*picked, info["candidates"][slot].item]) for slot in slots]

    def success_chance(self, info: Info, items: Sequence[MemoryItem]) -> float:
        """Return the author's chance of success with a context of these items.

        Args:
            info: The structured view of the state, which names task and start point.
            items: The picked items.

        Returns:
            The probability of a feasible kernel, in refining of a better one.
        """
        request = self.request(info, items)
        return predict(self.author, request.task, request.context, request.start, self.draws).better

    def request(self, info: Info, items: Sequence[MemoryItem]) -> GenerationRequest:
        """Return what the author is asked when these items are picked, API pages included."""
        task, start = _find(info["task"]), self._starts.get((info["task"], info["start"]))
        ranked = _ranked_pages(task, self.author.language)
        # Only the bank knows the start point's children; without them the author may repeat a move.
        return generation_request(
            task,
            items,
            lambda _, code: api_pages.select_pages(ranked, code),
            start,
            pages=self.pages,
            language=self.author.language,
        )


def picked_items(info: Info) -> list[MemoryItem]:
    """Return the items that are picked already, in order."""
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
    retrieved = bank.retrieve(describe(task), len(bank), (Kind.API,), language=language)
    return tuple(page.item for page in retrieved)
