"""`KernelWriting-v0` as an OpenEnv environment: a server with typed actions and observations, and its client.

    uvicorn kernel_gym.integrations.openenv:app --port 8000

    with KernelWritingClient(base_url="http://localhost:8000") as env:  # `.sync()` since version 0.3 of openenv-core
        result = env.reset(task="level1/relu")
        result = env.step(KernelAction(source="..."))

Every session has its own episode; all sessions share one verifier. Options are set by environment variables:
`KERNEL_GYM_SUITE` (default level1), `KERNEL_GYM_BUDGET` (default 10) and `KERNEL_GYM_SERVICE`, the address of a
verification service. Needs the extra `openenv`.
"""

from __future__ import annotations

import os
import re
from threading import Lock
from typing import Any
from uuid import uuid4

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
from pydantic import Field

from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.envs.writing import KernelWritingEnv, shown
from kernel_gym.errors import KernelGymError
from kernel_gym.version import __version__

#: Sessions at the same time.
SESSIONS = 64


class KernelAction(Action):
    """A kernel."""

    source: str = Field(description="Source text of the kernel, in the language of the device.")


class KernelObservation(Observation):
    """The task, the last kernel and what the verifier said about it."""

    task_id: str = ""
    language: str = ""
    task: str = Field("", description="Name, category, description and source of the task.")
    kernel: str = Field("", description="The last kernel.")
    feedback: str = Field("", description="Outcome and feedback of the last verdict.")
    best_kernel: str = Field("", description="The fastest feasible kernel of the episode.")
    stage: str = Field("draft", description="`draft` until a kernel is feasible, then `refine`.")
    attempts_left: int = 0
    first_us: float | None = Field(None, description="Latency of the first feasible kernel.")
    best_us: float | None = Field(None, description="Latency of the best kernel.")


class KernelState(State):
    """The episode: its id, the number of attempts and the task."""

    task_id: str = ""
    attempts_left: int = 0


class KernelWriting(Environment[KernelAction, KernelObservation, KernelState]):
    """An episode of `KernelWriting-v0` for one session.

    Args:
        options: Options of `KernelWriting-v0`.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._env = KernelWritingEnv(**options)
        self._state = KernelState()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> KernelObservation:
        """Begin an episode.

        Args:
            seed: Restarts the order of the tasks.
            episode_id: Id of the episode; drawn if it is left out.
            **kwargs: `task` names the task instead of the order.

        Returns:
            The first observation.
        """
        values, info = self._env.reset(seed=seed, options=kwargs or None)
        self._state = KernelState(episode_id=episode_id or str(uuid4()), task_id=info["task"])
        return self._observation(values, info)

    def step(self, action: KernelAction, timeout_s: float | None = None, **kwargs: Any) -> KernelObservation:
        """Judge a kernel.

        Args:
            action: The kernel. Characters that are not printable ASCII become `?`, as in observations, and what is
                longer than an action may be is cut.
            timeout_s: Not used: the verifier has its own limits.
            **kwargs: Not used.

        Returns:
            The observation with reward and `done`; `metadata["failure"]` if the infrastructure failed.
        """
        values, reward, terminated, truncated, info = self._env.step(shown(action.source))
        self._state.step_count += 1
        observation = self._observation(values, info)
        observation.reward, observation.done = float(reward), terminated or truncated
        observation.metadata = {"failure": info["failure"]} if "failure" in info else {}
        return observation

    @property
    def state(self) -> KernelState:
        """The state of the episode."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return name, description and version."""
        return EnvironmentMetadata(
            name="kernel_gym", description="Write accelerator kernels; a verifier rewards them.", version=__version__
        )

    def close(self) -> None:
        """End the episode; the shared verifier stays open."""
        self._env.close()

    def _observation(self, values: dict[str, Any], info: dict[str, Any]) -> KernelObservation:
        first, best = (float(us) or None for us in values["latency_us"])
        self._state.attempts_left = int(values["attempts_left"])
        return KernelObservation(
            task_id=info["task"],
            language=info["language"],
            **{name: values[name] for name in ("task", "kernel", "feedback", "best_kernel")},
            stage="refine" if values["stage"] else "draft",
            attempts_left=int(values["attempts_left"]),
            first_us=first,
            best_us=best,
        )


class KernelWritingClient(EnvClient[KernelAction, KernelObservation, KernelState]):
    """Client of the server; asynchronous since version 0.3 of openenv-core, where `.sync()` returns a blocking one."""

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        observation = KernelObservation(**payload["observation"] | {"reward": reward, "done": done})
        return StepResult(observation, reward, done)

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return KernelState(**payload)


class _SharedVerifier:
    """One verifier for all sessions, made when the first kernel needs it."""

    def __init__(self, options: Options) -> None:
        self._options, self._verifier, self._lock = options, None, Lock()
        self.device_name = factories.device_name(options)

    def verify(self, kernel: Any, task: Any) -> Any:
        with self._lock:
            if self._verifier is None:
                self._verifier = factories.verifier(self._options)
        verifier: Any = self._verifier
        return verifier.verify(kernel, task)


def make_app(**options: Any) -> Any:
    """Return the server's ASGI application.

    Args:
        **options: Options of `KernelWriting-v0`.

    Returns:
        The application, for uvicorn.

    Raises:
        KernelGymError: An option is not accepted.
    """
    KernelWritingEnv(**options)  # bad options are an error now, not in the first session
    options.setdefault("verifier", _SharedVerifier(Options.of({k: v for k, v in options.items() if k != "history"})))
    return create_fastapi_app(
        lambda: KernelWriting(**options), KernelAction, KernelObservation, max_concurrent_envs=SESSIONS
    )


def __getattr__(name: str) -> Any:
    """Make `app` when a server asks for it: importing the client needs no options."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    budget = os.environ.get("KERNEL_GYM_BUDGET", "10")
    if not re.fullmatch("[0-9]{1,9}", budget):
        raise KernelGymError(f"KERNEL_GYM_BUDGET is a number of attempts, not {budget!r}")
    return make_app(
        suite=os.environ.get("KERNEL_GYM_SUITE", "level1"),
        budget=int(budget),
        service=os.environ.get("KERNEL_GYM_SERVICE", ""),
    )
