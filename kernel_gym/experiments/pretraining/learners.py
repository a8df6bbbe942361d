"""The losses that train the network from decisions: cloning, logs, PPO and DQN, each with credit for one attempt."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kernel_gym.agents.scoring import CandidateScorer
from kernel_gym.envs.observation import Layout
from kernel_gym.experiments.pretraining.rollouts import Decisions

Numbers = NDArray[np.float64]

#: Decisions in one step of the optimiser, and the largest norm of its gradient.
MINIBATCH, GRADIENT = 1024, 0.5


class Learner:
    """Updates a network from decisions.

    Args:
        scorer: The network, on the device that it is trained on.
        learning_rate: Learning rate of Adam.
        seed: Seed of the order of minibatches.
    """

    def __init__(self, scorer: CandidateScorer, learning_rate: float, seed: int = 0) -> None:
        self.scorer = scorer
        self.optimiser = torch.optim.Adam(scorer.parameters(), lr=learning_rate, eps=1e-5)
        self.rng = np.random.default_rng(seed)

    def clone(self, decisions: Sequence[Decisions], epochs: int = 2) -> dict[str, float]:
        """Raise the probability of the actions that were taken, and fit the values to the returns."""
        data, losses = self._data(decisions), list[float]()
        for rows in self._minibatches(len(data["actions"]), epochs):
            scores, values = self._forward(data, rows)
            likelihood = torch.log_softmax(scores, -1).gather(1, data["actions"][rows, None])[:, 0]
            loss = -likelihood.mean() + 0.5 * (values - data["returns"][rows]).square().mean()
            self._step(loss)
            losses.append(float(loss.detach()))
        return {"clone_loss": float(np.mean(losses))}

    def learn(self, decisions: Sequence[Decisions]) -> dict[str, float]:
        """Update the network; return figures of the update."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return everything that training goes on from."""
        return {
            "weights": self.scorer.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.scorer.load_state_dict(state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.rng.bit_generator.state = state["rng"]

    def _data(self, decisions: Sequence[Decisions]) -> dict[str, Tensor]:
        """Return the columns of all decisions as tensors; `following` counts on over all of them."""
        device = next(self.scorer.parameters()).device
        names = ("observations", "masks", "actions", "log_probabilities", "returns")
        columns = {name: np.concatenate([getattr(some, name) for some in decisions]) for name in names}
        begins = np.cumsum([0, *(len(some.actions) for some in decisions)])
        columns["following"] = np.concatenate(
            [
                np.where(some.following < 0, -1, some.following + begin)
                for some, begin in zip(decisions, begins, strict=False)
            ]
        )
        return {name: torch.as_tensor(column).to(device) for name, column in columns.items()}

    def _drafting(self, data: dict[str, Tensor]) -> Tensor:
        """Return which decisions belong to drafts."""
        layout = Layout.of_size(data["masks"].shape[1] - 1, data["observations"].shape[1])
        return data["observations"][:, int(layout.globals("stage.draft"))] > 0.5

    def _forward(self, data: dict[str, Tensor], rows: Tensor, scorer: CandidateScorer | None = None) -> Any:
        mask = data["masks"][rows].float()
        return (scorer or self.scorer).masked({"observations": data["observations"][rows], "action_mask": mask})

    def _minibatches(self, count: int, epochs: int) -> Iterator[Tensor]:
        device = next(self.scorer.parameters()).device
        for _ in range(epochs):
            order = self.rng.permutation(count)
            for begin in range(0, count, MINIBATCH):
                yield torch.as_tensor(order[begin : begin + MINIBATCH]).to(device)

    def _step(self, loss: Tensor) -> None:
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.scorer.parameters(), GRADIENT)
        self.optimiser.step()


class LoggedLearner(Learner):
    """Regression of logged rewards on the action taken, relative to the logging policy's own mean.

    The reward is modelled as value + score of the action - mean score under the logging policy. What the logging policy
    prefers cannot be mistaken for what is worth picking, however poor the value is (arXiv 1711.03596).
    """

    def fit(self, decisions: Sequence[Decisions], chances: Sequence[Numbers], epochs: int = 3) -> dict[str, float]:
        """Fit values and scores.

        Args:
            decisions: The log.
            chances: The logging policy's probability of every action, one row for each decision.
            epochs: Passes over the log, with a learning rate that falls to zero.

        Returns:
            The mean squared error in the last tenth of the steps.
        """
        data, errors = self._data(decisions), list[float]()
        data["chances"] = torch.as_tensor(np.concatenate(chances), dtype=torch.float32).to(data["actions"].device)
        steps = epochs * -(-len(data["actions"]) // MINIBATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, self.optimiser.param_groups[0]["lr"], total_steps=steps + 1, pct_start=0.1
        )
        for rows in self._minibatches(len(data["actions"]), epochs):
            scores, values = self._forward(data, rows)
            legal = scores.masked_fill(~data["masks"][rows], 0.0)
            taken = legal.gather(1, data["actions"][rows, None])[:, 0]
            expected = values + taken - (data["chances"][rows] * legal).sum(-1)
            error = (expected - data["returns"][rows]).square().mean()
            self._step(error)
            schedule.step()
            errors.append(float(error.detach()))
        return {"error": float(np.mean(errors[-max(1, len(errors) // 10) :]))}


class PPOLearner(Learner):
    """Proximal policy optimisation (arXiv 1707.06347); the advantage of a pick is the attempt's reward minus the value.

    Advantages are scaled within each stage: what refining earns has another scale than what drafting earns.

    Args:
        scorer: The network.
        learning_rate: Learning rate.
        seed: Seed of the order of minibatches.
        clip: Range of the probability ratio.
        entropy: Coefficient of the entropy bonus.
        epochs: Passes over each batch of decisions.
    """

    def __init__(
        self,
        scorer: CandidateScorer,
        learning_rate: float = 3e-4,
        seed: int = 0,
        clip: float = 0.2,
        entropy: float = 0.005,
        epochs: int = 2,
    ) -> None:
        super().__init__(scorer, learning_rate, seed)
        self.clip, self.entropy, self.epochs = clip, entropy, epochs

    def learn(self, decisions: Sequence[Decisions]) -> dict[str, float]:
        """Update policy and values from decisions that the present policy made."""
        data = self._data(decisions)
        with torch.no_grad():
            every = torch.arange(len(data["actions"]), device=data["actions"].device)
            values = torch.cat([self._forward(data, rows)[1] for rows in torch.split(every, 8 * MINIBATCH)])
            advantages = _scaled(data["returns"] - values, self._drafting(data))
        figures = []
        for rows in self._minibatches(len(data["actions"]), self.epochs):
            scores, values = self._forward(data, rows)
            log_all = torch.log_softmax(scores, -1)
            ratio = (log_all.gather(1, data["actions"][rows, None])[:, 0] - data["log_probabilities"][rows]).exp()
            gain = torch.minimum(
                ratio * advantages[rows], ratio.clamp(1 - self.clip, 1 + self.clip) * advantages[rows]
            ).mean()
            entropy = -(log_all.exp() * log_all).sum(-1).mean()
            error = (values - data["returns"][rows]).square().mean()
            self._step(0.5 * error - gain - self.entropy * entropy)
            figures.append((float(entropy.detach()), float(error.detach())))
        entropy_mean, error_mean = np.mean(figures, axis=0)
        return {"entropy": float(entropy_mean), "value_error": float(error_mean)}


class DQNLearner(Learner):
    """Double Q-learning from replay (arXiv 1509.06461); an attempt's last pick has its reward as the target.

    Args:
        scorer: The network; its scores are values of actions.
        learning_rate: Learning rate.
        seed: Seed of the draws from the replay.
        capacity: Decisions that the replay holds.
        intensity: How often each new decision is used, on average.
        renewal: Steps of the optimiser between two renewals of the target network.
    """

    def __init__(
        self,
        scorer: CandidateScorer,
        learning_rate: float = 3e-4,
        seed: int = 0,
        capacity: int = 200_000,
        intensity: float = 4.0,
        renewal: int = 200,
    ) -> None:
        super().__init__(scorer, learning_rate, seed)
        self.capacity, self.intensity, self.renewal = capacity, intensity, renewal
        self._target = copy.deepcopy(scorer)
        self._replay: list[Decisions] = []
        self._steps = 0

    def learn(self, decisions: Sequence[Decisions]) -> dict[str, float]:
        """Add decisions to the replay and update the network from draws out of it."""
        self._replay += decisions
        while sum(len(some.actions) for some in self._replay) > self.capacity and len(self._replay) > 1:
            self._replay.pop(0)
        data, errors = self._data(self._replay), list[float]()
        new = sum(len(some.actions) for some in decisions)
        for _ in range(max(1, round(self.intensity * new / MINIBATCH))):
            errors.append(self._update(data, self.rng.integers(len(data["actions"]), size=MINIBATCH)))
        return {"td_error": float(np.mean(errors))}

    def _update(self, data: dict[str, Tensor], drawn: NDArray[Any]) -> float:
        rows = torch.as_tensor(drawn).to(data["actions"].device)
        following = data["following"][rows]
        with torch.no_grad():
            after = following.clamp(min=0)
            best = self._forward(data, after)[0].argmax(-1, keepdim=True)
            bootstrap = self._forward(data, after, self._target)[0].gather(1, best)[:, 0]
            target = torch.where(following < 0, data["returns"][rows], bootstrap)
        values = self._forward(data, rows)[0].gather(1, data["actions"][rows, None])[:, 0]
        self._step(nn.functional.smooth_l1_loss(values, target))
        self._steps += 1
        if self._steps % self.renewal == 0:
            self._target.load_state_dict(self.scorer.state_dict())
        return float((values.detach() - target).abs().mean())

    def clone(self, decisions: Sequence[Decisions], epochs: int = 2) -> dict[str, float]:
        """Fit the values of the actions that were taken to the returns."""
        data, losses = self._data(decisions), list[float]()
        for rows in self._minibatches(len(data["actions"]), epochs):
            values = self._forward(data, rows)[0].gather(1, data["actions"][rows, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(values, data["returns"][rows])
            self._step(loss)
            losses.append(float(loss.detach()))
        self._target.load_state_dict(self.scorer.state_dict())
        return {"clone_loss": float(np.mean(losses))}

    def state(self) -> dict[str, Any]:
        """Return everything but the replay, which fills again."""
        return super().state() | {"target": self._target.state_dict(), "steps": self._steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        super().restore(state)
        self._target.load_state_dict(state["target"])
        self._steps = state["steps"]


def _scaled(advantages: Tensor, drafting: Tensor) -> Tensor:
    """Return advantages with mean 0 and deviation 1 in each stage."""
    scaled = torch.zeros_like(advantages)
    for part in (drafting, ~drafting):
        some = advantages[part]
        if len(some) > 1:
            scaled[part] = (some - some.mean()) / (some.std() + 1e-6)
    return scaled


LEARNERS: dict[str, type[Learner]] = {"ppo": PPOLearner, "dqn": DQNLearner}
