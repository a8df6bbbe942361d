"""The environments of a run as its agent sees them: attempts are written down, and none is made beyond the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from kernel_gym.envs.vector import view

if TYPE_CHECKING:
    from kernel_gym.experiments.runs.training import Session


class RecordingEnv(gym.Wrapper[Any, Any, Any, Any]):
    """The environment, every attempt of which is written down."""

    def __init__(self, env: gym.Env[Any, Any], session: Session) -> None:
        super().__init__(env)
        self._session = session

    def step(self, action: Any) -> Any:
        """Step, unless the budget is spent."""
        with self._session.watching():
            result = self.env.step(action)
            self._session.take(result[-1])
        return result


class RecordingVectorEnv(gym.vector.VectorWrapper):
    """The same for the vector form. The run's seed is the run's: a library that owns the loop can't give another."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any], session: Session) -> None:
        super().__init__(envs)
        self._session = session

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Begin the run."""
        with self._session.failing():
            return self.env.reset(seed=self._session.config.seed, options=options)

    def step(self, actions: Any) -> Any:
        """Step, unless the budget is spent."""
        with self._session.watching():
            result = self.env.step(actions)
            for i in range(self.num_envs):
                self._session.take(view({}, result[-1], i)[1])
        return result
