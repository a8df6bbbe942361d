"""Rewards and prompts for GRPO: the verifier as a reward function of TRL's `GRPOTrainer`.

    reward = KernelReward(suites.load_suite("level1"))
    trainer = GRPOTrainer(model, reward_funcs=reward, train_dataset=Dataset.from_list(prompts(reward.tasks)), ...)

Nothing here imports TRL: the reward is a function of texts, as its trainers and others call it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernel_gym.authors.model.answer import kernel_source
from kernel_gym.authors.model.prompt import messages
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Policy, Uncompilable, Verdict
from kernel_gym.verifier.contract import KernelVerifier

#: A completion: plain text, or the messages of a conversation.
Completion = str | Sequence[Mapping[str, str]]

#: The reward of each outcome. A compiled kernel with wrong values is worth more than one that does not compile, so that
#: a group in which nothing is feasible still says which answers are better.
REWARDS = {"cheated": -1.0, "uncompilable": -1.0, "incorrect": -0.5, "feasible": 1.0}


def outcome_reward(verdict: Verdict) -> float | None:
    """Return the reward of a verdict's outcome; None if the infrastructure failed, so that the sample is left out."""
    return REWARDS.get(verdict.outcome)


class KernelReward:
    """A reward function: judges the kernels in a group of completions.

    Args:
        tasks: The tasks that prompts are about.
        verifier: Judges the kernels. None: the verifier on `device`.
        device: The device, by name.
        policy: How kernels are judged, `strict` or `reference`.
        reward: Turns a verdict into a reward.

    Examples:
        >>> from kernel_gym import suites
        >>> reward = KernelReward([suites.find_task("level1/relu")])
        >>> reward(["..."], ["I do not know."], task=["level1/relu"])
        [-1.0]
    """

    __name__ = "kernel_reward"

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        verifier: KernelVerifier | None = None,
        device: str = "ascend-sim",
        policy: Policy = "strict",
        reward: Callable[[Verdict], float | None] = outcome_reward,
    ) -> None:
        from kernel_gym import plugins
        from kernel_gym.verifier import Verifier

        self.tasks = tuple(tasks)
        self._by_id = {task.id: task for task in tasks}
        self._own = verifier is None
        self.language = str(plugins.load("kernel_gym.devices", device).language)
        self.verifier: Any = verifier or Verifier(
            plugins.make("kernel_gym.devices", device, {}), workers=len(os.sched_getaffinity(0)), policy=policy
        )
        self.reward = reward
        #: The verdicts of the last call, in order.
        self.verdicts: list[Verdict] = []

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Completion], *, task: Sequence[str], **columns: Any
    ) -> list[float | None]:
        """Return a reward for each completion.

        Args:
            prompts: The prompts; they are not read.
            completions: The answers, as texts or as messages.
            task: The id of the task of each prompt, a column of the data set.
            **columns: Other columns and the trainer's own arguments; they are not read.

        Returns:
            One reward for each completion; None where the infrastructure failed.
        """
        kernels = [Kernel(kernel_source(_text(completion)), self.language) for completion in completions]
        pairs = [(kernel, self._by_id[name]) for kernel, name in zip(kernels, task, strict=True)]
        judged = iter(self._judge([pair for pair in pairs if pair[0].source.strip()]))
        empty = Uncompilable("the answer has no source to compile")
        self.verdicts = [next(judged) if kernel.source.strip() else empty for kernel, _ in pairs]
        return [self.reward(verdict) for verdict in self.verdicts]

    def _judge(self, pairs: Sequence[tuple[Kernel, Task]]) -> Sequence[Verdict]:
        verify_all = getattr(self.verifier, "verify_all", None)
        if verify_all is not None:
            return list(verify_all(pairs))
        return [self.verifier.verify(kernel, task) for kernel, task in pairs]

    def close(self) -> None:
        """Close the verifier that was made here; one that was given stays open."""
        if self._own:
            self.verifier.close()


def prompts(
    tasks: Sequence[Task], language: str = "ascendc", tokens: int = 8192
) -> list[dict[str, str | list[dict[str, str]]]]:
    """Return a row for each task: the prompt as messages, and the task's id.

    Args:
        tasks: The tasks.
        language: The language to write.
        tokens: About how many tokens a prompt may have.

    Returns:
        Rows with the columns `prompt` and `task`, which `KernelReward` reads.
    """
    return [{"prompt": messages(task, (), None, tokens, language), "task": task.id} for task in tasks]


def _text(completion: Completion) -> str:
    return completion if isinstance(completion, str) else "\n".join(message["content"] for message in completion)
