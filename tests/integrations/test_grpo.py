"""Tests of the verifier as a reward function of trainers of language models."""

from __future__ import annotations

from kernel_gym import suites
from kernel_gym.integrations.grpo import REWARDS, KernelReward, prompts
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable, Unjudged

RELU = suites.find_task("level1/relu")


class Judge:
    """A verifier that looks for a word in the source."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def verify(self, kernel, task):
        self.sources.append(kernel.source)
        words = {
            "good": Feasible("Correct.", latency=1.0),
            "wrong": Incorrect("differs"),
            "lost": Unjudged("no device"),
        }
        return next((verdict for word, verdict in words.items() if word in kernel.source), Uncompilable("error"))


def answer(word: str) -> str:
    return f'Here it is:\n```cpp\nextern "C" int kernel_launch() {{ /* {word} */ }}\n```\n'


def test_every_completion_gets_the_reward_of_its_verdict():
    reward = KernelReward([RELU], verifier=Judge())
    completions = [answer("good"), answer("wrong"), answer("other"), "I do not know.", answer("lost")]
    assert reward(["p"] * 5, completions, task=[RELU.id] * 5, trainer_state=None) == [1.0, -0.5, -1.0, -1.0, None]
    assert [verdict.outcome for verdict in reward.verdicts][3:] == ["uncompilable", "unjudged"]


def test_messages_and_texts_are_judged_alike():
    judge = Judge()
    reward = KernelReward([RELU], verifier=judge)
    as_messages = [{"role": "assistant", "content": answer("good")}]
    assert reward(["p", "p"], [answer("good"), as_messages], task=[RELU.id] * 2) == [1.0, 1.0]
    assert judge.sources[0] == judge.sources[1]
    assert "Here it is" not in judge.sources[0]


def test_every_outcome_of_a_judged_kernel_has_a_reward():
    judged = {kind.outcome for kind in (Cheated, Uncompilable, Incorrect, Feasible)}
    assert set(REWARDS) == judged


def test_prompts_name_their_task():
    (row,) = prompts([RELU])
    assert row["task"] == "level1/relu"
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert "relu" in row["prompt"][1]["content"].lower()


def test_the_real_verifier_pays_for_the_oracle():
    from kernel_gym.authors.apprentice.author import oracle

    reward = KernelReward([RELU])
    assert reward(["p"], [f"```cpp\n{oracle(RELU).source}```"], task=[RELU.id]) == [1.0]
    reward.close()
