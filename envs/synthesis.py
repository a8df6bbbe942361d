"""The environment: an agent chooses what a kernel author is shown, a verifier's verdict is the reward."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernel_gym.envs.episode import AttemptResult, Episode
from kernel_gym.envs.observation import Layout, Vector
from kernel_gym.envs.options import Options, reset_option
from kernel_gym.envs.picture import Pixels, picture
from kernel_gym.envs.rendering import frame, known_mode
from kernel_gym.envs.services import Services
from kernel_gym.memory.bank import MemoryBank


class KernelSynthesisEnv(gym.Env[dict[str, Vector], np.int64]):
    """
    Choose which memories a frozen kernel author is shown. The verifier's verdict is the reward and becomes a memory.

    ## Description
    A *task* is a PyTorch module. An *author* (a program or a language model) writes a kernel for it. The author is
    shown a context of at most `N` memories. The agent picks them, one in each step, from a pool of `K = lambda * N`
    candidates that dense retrieval finds. A *verifier* compiles, checks and times the kernel on a device. The picks
    and the one verdict that they lead to are an *attempt*; an episode is the `T` attempts at one task. Attempts
    *draft* until a kernel is feasible. Then they *refine*: they start from a feasible kernel and aim at lower latency.
    The new kernel with its verdict joins the bank that the next pools are drawn from.

    ## Action Space
    `Discrete(K + 1)`: pick candidate `k`, or `K` = generate now. After `N` picks the kernel is generated without a
    further action. A refining attempt has one more pick, the first: its candidates are start points, fastest first.
    With `repair`, a drafting attempt has it too, from the second on: its candidate is the last attempt, and `K` drafts
    anew. With several `drafts`, an attempt has one more action, the last: its candidates are the kernels that the
    author wrote, of which one is verified. Pool and order are fixed within an attempt.

    `action_mask` marks the legal actions with 1: candidates that exist and are not picked yet; `K`, unless a start
    point must be chosen. A masked pick is not an error: it picks nothing and uses up the pick; for the start point it
    means the fastest one, in drafting none. To sample a legal action:

        env.action_space.sample(observation["action_mask"].astype(np.int8))

    `env.unwrapped.action_masks()` returns the same mask as booleans; sb3-contrib's MaskablePPO looks for it.

    ## Observation Space
    `Dict(observations=Box, action_mask=Box(0, 1, (K + 1,)))`, float32. `observations` holds `F` numbers for each of
    the `K` candidates and then `G` global ones, all within [-1, 1]. `env.unwrapped.layout` addresses them by name:

    | candidate feature | meaning |
    |---|---|
    | kind (4) | experience, trace, practice, start |
    | similarity | cosine of the item and the query: the task's text, in refining with the bottleneck's diagnosis |
    | same_task, same_category | 1 if the item comes from the same task, from a task of the same category |
    | feasible | 1 if the item's kernel passed every gate |
    | relative_latency | fastest latency the bank holds for the item's task / the item's own; 0 if it has none |
    | origin (2) | the stage the item was produced in |
    | age | a / (a + 100) of the attempts since it joined the bank |
    | uses (2) | u / (u + 10) of the attempts it was shown in, by stage |
    | mean (2), recent (2) | mean and exponentially averaged reward (weight 0.2, from 0) of those attempts, by stage |
    | picked | 1 if it is in the context |
    | overlap | share of the words in its text that the picks already show |
    | operators, uncovered | share of the task's ATen operators that the item's task has; of those that no pick has |
    | compiled, length | 1 if the item's kernel compiled; l / (l + 10000) of the characters of its text |
    | covered | share of the words of this episode's kernels that its text has |
    | named, unnamed | share of the words of this episode's failure messages that its text has; of those no pick has |
    | repeated | share of this episode's failures that are of the same kind as the item's own |
    | text (8) | the item's embedding, projected |

    | global feature | meaning |
    |---|---|
    | stage (2) | draft, refine |
    | attempts_left, picks_left | shares of `T` and of `N + 1` |
    | best_speedup | tanh(log(first feasible latency / best latency)) |
    | last_verdict (6) | none, cheated, uncompilable, incorrect, feasible, unjudged |
    | category (16), embedding (16) | the task's category; its text embedded and projected |
    | outcomes (3), author (3) | shares of the episode's and of the run's attempts so far by outcome |

    From `compiled` on, and `outcomes` and `author`, the features belong to version 2; `layout=1` leaves them out.

    ## Starting State
    The next task of the curriculum (or `options={"task": id}`) with its whole budget. The episode begins in drafting;
    in refining if the bank already holds a feasible kernel of the task from this device.

    ## Rewards
    0 while picking. The step that generates pays `r1 = +1` if the kernel is feasible, else `-1`, in drafting; in
    refining `r2 = tanh(log b - log latency)` with `b` the best latency before the attempt, and `-1` if infeasible.
    Rewards are raw: normalisation belongs to the agent. An author's empty answer is an infeasible attempt.

    ## Episode End
    *Termination*: the budget of `T` attempts is spent (verdicts from the cache count like others); with
    `stages="draft"` also the first feasible kernel. *Truncation*: five infrastructure errors in a row. Such an
    error is retried twice, without asking the author again for a kernel that it has written; then the step pays 0,
    costs no budget and adds no memory.

    ## Information
    `reset` and `step` give `task`, `category`, `stage`, `attempts_left`, `picks_left`, `start_due`, `draft_due`,
    `candidates` (a tuple of `Candidate`, in slot order, with items and ids; start points with their children), `picked`
    (ids), `start` (id; 0 while none is chosen, ids begin at 1), `first_us` and `best_us` (first and best feasible
    latency in microseconds; 0.0 while there is none), `last_verdict` (None before the first). A step that generated
    adds `attempt`, the finished `Attempt` with the ids of the context, of the API pages that the environment added
    after the picks, and of the items that joined the bank; or `failure`, the infrastructure's error. A key always has
    the same type, so `gymnasium.make_vec` can put the infos of several environments into arrays.

    ## Arguments
    All by keyword. Parts can be given by name or as objects. `kernel_gym.envs.options.Options` says more on each.

    | argument | default | meaning |
    |---|---|---|
    | suite | "level1" | Suite whose tasks are worked on |
    | tasks | None | Tasks to work on: ids, files or `Task` objects |
    | device | "ascend-sim" | Device that kernels run on, by name or as an object |
    | device_options | {} | Arguments of a device given by name |
    | verifier | None | Object that judges the kernels |
    | service | "" | Address of a verification service (`kernel-gym serve`) that judges the kernels on its `device` |
    | cluster | "" | Address of a Ray cluster on whose nodes the kernels are judged: `HOST:PORT`, or `auto` |
    | workers | 0 | Kernels that the vector form has judged at the same time; 0: one a core |
    | policy | "strict" | How kernels are judged: `strict`, or `reference` as published harnesses do |
    | inspection | {} | Model that also reads kernels that passed every gate: its settings, or a function |
    | writers | 0 | Requests that the vector form sends to the author at the same time; 0: the author decides |
    | author | "apprentice" | Author of the kernels, by name or as an object |
    | author_options | {} | Arguments of an author given by name |
    | budget | 30 | T: attempts at a task, drafting and refining together |
    | picks | 5 | N: items in a context |
    | pool_factor | 4 | lambda: the pool has K = lambda * N slots |
    | pool_schedule | () | Pairs (attempt, lambda): the pool has this lambda from this attempt of a task on |
    | start_points | "fastest" | Start points that a refining attempt offers: the `fastest` lambda * N, or `all` |
    | drafts | 1 | Kernels that the author writes for one verification |
    | sizes | "timing" | Sizes at which latency counts: those of the task, or `held-out` ones near them |
    | coverage | 0.0 | Weight of profiling coverage in the reward of refining, below 1 |
    | stages | "both" | `draft` ends at the first feasible kernel, `refine` begins from kernels in the bank |
    | memory | "shared" | `shared` grows, `fresh` is restored before every episode, `frozen` adds start points only |
    | repair | False | Whether a drafting attempt begins with an offer to mend the last attempt |
    | pages | "all" | API pages that follow the picks: `all`, `basics`, `none`, or one `demonstration` instead |
    | statistics | True | Whether the rewards of shown items are recorded, for agents to see |
    | curriculum | "sequential" | `sequential`, `mixed`, `levels`, or a function (tasks, round, rng) -> tasks |
    | composition | "similarity" | What fills the pool: the nearest items, `stratified`, or `by-kind` |
    | embedder | "static" | Turns texts into vectors, by name or as an object |
    | embedder_options | {} | Arguments of an embedder given by name |
    | bank | None | Memory bank, or the file that it is kept in; None: in memory |
    | operators | None | Function that returns a task's ATen operators |
    | layout | 2 | Version of the observation |
    | seed | None | Run seed until `reset(seed=...)` gives another; None: drawn |

    and `render_mode`: "ansi" (text), "human" (the text is printed), "rgb_array" (a picture) or None.

    `reset(seed=s)` restores bank and curriculum as constructed and makes `s` the run seed; `reset()` keeps them and
    goes on. Everything random is derived from (run seed, task, attempt).

    ## Version History
    * v0: initial version
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        """Make the environment.

        Args:
            render_mode: `ansi`, `human`, `rgb_array` or None.
            **options: The arguments in the table above, which `Options` declares.

        Raises:
            ConfigError: If an option does not exist or has a value that is not accepted.
        """
        self.options = Options.of(options)
        self.render_mode = known_mode(render_mode, self.metadata)
        self._begun = False
        # One kernel at a time needs one worker.
        self._services = Services(replace(self.options, workers=1))
        self._episode = Episode(self._services, self._services.bank)
        self._result: AttemptResult | None = None
        self.observation_space = self.layout.space()
        self.action_space = gym.spaces.Discrete(self.options.slots + 1)

    @property
    def layout(self) -> Layout:
        """The layout of the observation: where each feature lies."""
        return self._services.layout

    @property
    def bank(self) -> MemoryBank:
        """The memory bank."""
        return self._services.bank

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Vector], dict[str, Any]]:
        """Begin the next task.

        Args:
            seed: Restores bank and curriculum as constructed and becomes the run seed. None keeps them and goes on.
            options: `{"task": id}` names the task instead of the curriculum.

        Returns:
            The first observation and its info.

        Raises:
            TaskError: The task is not one of this environment's.
            ConfigError: `stages="refine"` and the bank holds no feasible kernel of the task, or `options` has another
                key.
        """
        name = reset_option(options, "task")
        super().reset(seed=self.options.seed if seed is None and not self._begun else seed)
        if seed is not None:
            self._services.restart(int(self.np_random_seed))
        elif not self._begun:
            self._services.begin(int(self.np_random_seed))
        self._episode.begin(self._services.next_task(name))
        self._result, self._begun = None, True
        self._show()
        return self._episode.observation(), self._episode.info()

    def step(self, action: np.int64) -> tuple[dict[str, Vector], float, bool, bool, dict[str, Any]]:
        """Make one pick. After the last pick of an attempt the kernel is written, judged and added to the memory.

        Args:
            action: A candidate's slot, or `K` to generate now.

        Returns:
            Observation, reward, terminated, truncated and info.

        Raises:
            gymnasium.error.InvalidAction: The action is outside the action space.
            gymnasium.error.ResetNeeded: The episode is over or has not begun.
        """
        if not self.action_space.contains(action):
            raise gym.error.InvalidAction(f"{action!r} is not an action; they are 0..{self.options.slots}")
        if not self._begun or self._episode.over or self._episode.given_up:
            raise gym.error.ResetNeeded(f"the episode {'is over' if self._begun else 'has not begun'}; call reset()")
        self._result = None
        self._episode.pick(int(action))
        if self._episode.ready and self._episode.needs_drafts:
            self._episode.offer_drafts(*self._services.write_drafts([self._episode.request()]))
        if self._episode.ready:
            (generated,) = self._services.generate_and_verify([self._episode.request()], [self._episode.draft])
            self._result = self._episode.commit(generated)
            self._episode.open_attempt()
        self._show()
        reward = self._result.reward if self._result else 0.0
        info = self._episode.info() | (self._result.info() if self._result else {})
        return self._episode.observation(), reward, self._episode.over, self._episode.given_up, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return True for every legal action, as sb3-contrib's MaskablePPO asks for it."""
        if not self._begun:
            raise gym.error.ResetNeeded("there is no mask yet; call reset()")
        return self._episode.mask() > 0.5

    def render(self) -> str | Pixels | None:  # type: ignore[override]
        """Return the state: text with `ansi`, a picture with `rgb_array`.

        With `human`, `reset` and `step` print the text and this returns None.
        """
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode: gymnasium.make(..., render_mode='ansi')")
            return None
        if not self._begun:
            raise gym.error.ResetNeeded("there is nothing to show yet; call reset()")
        if self.render_mode == "rgb_array":
            return picture(self._episode, self._result, self.options.slots)
        return frame(self._episode, self._result) if self.render_mode == "ansi" else None

    def _show(self) -> None:
        if self.render_mode == "human":
            print(frame(self._episode, self._result), flush=True)

    def close(self) -> None:
        """Close the parts that the environment made; parts that were given as objects stay open."""
        self._services.close()
