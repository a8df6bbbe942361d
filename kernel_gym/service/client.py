"""A verifier that asks a verification service.

It waits for a service that is busy or away and asks again; requests are addressed by their content, so asking twice
does no harm. The token, if the service needs one, is `$KERNEL_GYM_TOKEN`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import local
from typing import Any

import requests
from pydantic import ValidationError

from kernel_gym import plugins, suites
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.hardware.device import Device
from kernel_gym.kernel import Kernel
from kernel_gym.service.messages import WAIT, Health, JobState, VerifyRequest
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict, from_json

TOKEN = "KERNEL_GYM_TOKEN"
#: Seconds beyond the wait that an answer may take.
GRACE = 30.0
#: Seconds between two requests to a service that is busy or away; they double from the first to the last.
PAUSES = (0.2, 5.0)


class RemoteVerifier:
    """Judges kernels at a service; takes the place of `Verifier`.

    Args:
        url: Address of the service, `http://host:port`.
        device: Name of the device that the service must have; empty for any.
        policy: Policy that the service must have; empty for any.
        patience: Seconds to wait for a service that is busy or away.
        parallel: Requests at the same time; 0 for twice the service's workers.

    Raises:
        ConfigError: The address is no URL.
    """

    def __init__(
        self, url: str, device: str = "", policy: str = "", patience: float = 600.0, parallel: int = 0
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"a verification service is given as http://HOST:PORT, not {url!r}")
        self.url, self.device_name, self.policy = url.rstrip("/"), device, policy
        self.patience, self.parallel = patience, parallel
        self._sessions = local()
        self._health: Health | None = None

    def check(self) -> Health:
        """Return what the service runs on; the first call waits for a service that is still starting.

        Raises:
            ConfigError: The service has another device or policy, or wants a token.
            InfrastructureError: The service cannot be reached.
        """
        if self._health is None:
            health = Health.model_validate(self._ask("GET", "/health").json())
            for name, wanted in (("device", self.device_name), ("policy", self.policy)):
                if wanted and getattr(health, name) != wanted:
                    raise ConfigError(f"{self.url} has the {name} {getattr(health, name)}, not {wanted}")
            self._health = health
        return self._health

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """Judge one kernel; see `Verifier.verify`.

        Raises:
            ConfigError: The service refuses the request; another one may do.
            InfrastructureError: The service was away or busy for longer than the patience.
        """
        self.check()
        body = _request(kernel, task).model_dump()
        deadline = time.monotonic() + self.patience
        while True:
            state: JobState | None = self._post(body)
            while state is not None and state.state != "done":
                state = self._fetch(state.id)
                deadline = time.monotonic() + self.patience  # the service is at work
            if state is not None and state.verdict is not None:
                return from_json(state.verdict)
            if time.monotonic() > deadline:
                raise InfrastructureError(f"{self.url} forgets this job again and again")

    def verify_all(self, pairs: Sequence[tuple[Kernel, Task]]) -> list[Verdict]:
        """Judge several kernels in parallel.

        Returns:
            The verdicts in the order of the pairs.

        Raises:
            ConfigError: As `verify`.
            InfrastructureError: As `verify`.
        """
        parallel = self.parallel or 2 * self.check().workers
        with ThreadPoolExecutor(max(1, min(parallel, len(pairs)))) as pool:
            return list(pool.map(lambda pair: self.verify(*pair), pairs))

    @cached_property
    def device(self) -> Device:
        """The service's device as this machine knows it, for its name, its language and its floor."""
        device: Device = plugins.make("kernel_gym.devices", self.check().device, {})
        return device

    def close(self) -> None:
        """Close the connections of this thread."""
        self._session.close()
        if "device" in self.__dict__:
            self.device.close()

    def __enter__(self) -> RemoteVerifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_sessions", "device")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_sessions": local()}

    @property
    def _session(self) -> requests.Session:
        """The connections of this thread, which keep their cookies and sockets to themselves."""
        if not hasattr(self._sessions, "session"):
            session = requests.Session()
            if token := os.environ.get(TOKEN):
                session.headers["Authorization"] = f"Bearer {token}"
            self._sessions.session = session
        return self._sessions.session  # type: ignore[no-any-return]

    def _post(self, body: dict[str, Any]) -> JobState:
        return _job(self._ask("POST", "/verify", json=body, params={"wait": WAIT}))

    def _fetch(self, id: str) -> JobState | None:
        """Return the state of a job; None if the service has forgotten it, after a restart for instance."""
        answer = self._ask("GET", f"/verify/{id}", forgotten=True, params={"wait": WAIT})
        return None if answer.status_code == 404 else _job(answer)

    def _ask(self, method: str, path: str, forgotten: bool = False, **request: Any) -> requests.Response:
        """Return the answer to a request; ask again while the service is busy or away, until patience ends."""
        deadline, pause = time.monotonic() + self.patience, PAUSES[0]
        while True:
            try:
                answer = self._session.request(method, self.url + path, timeout=WAIT + GRACE, **request)
            except requests.RequestException as error:
                problem, after = f"cannot be reached: {type(error).__name__}", pause
            else:
                if answer.ok or (forgotten and answer.status_code == 404):
                    return answer
                problem, after = _problem(answer), _seconds(answer.headers.get("Retry-After", ""), pause)
                if answer.status_code not in (429, 500, 502, 503, 504):
                    raise ConfigError(f"{self.url}: {problem}")
            if time.monotonic() + after > deadline:
                raise InfrastructureError(f"{self.url}: {problem}")
            time.sleep(after)
            pause = min(2 * pause, PAUSES[1])


def _seconds(text: str, otherwise: float) -> float:
    """Return a time in seconds; proxies may answer with a date instead."""
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d+)?", text) else otherwise


def _request(kernel: Kernel, task: Task) -> VerifyRequest:
    packaged = task.suite in suites.SUITES
    return VerifyRequest(
        task=task.id if packaged else task.name,
        task_source="" if packaged else task.source,
        task_digest=task.digest,
        source=kernel.source,
        language=kernel.language,
        form=kernel.form,
        trusted=kernel.trusted,
    )


def _job(answer: requests.Response) -> JobState:
    try:
        return JobState.model_validate(answer.json())
    except (ValidationError, requests.JSONDecodeError) as error:
        raise InfrastructureError(f"{answer.url} answers what no verification service answers: {error}") from error


def _problem(answer: requests.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (requests.JSONDecodeError, KeyError, TypeError):
        return f"status {answer.status_code}"
