"""The messages of the service, as JSON."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.kernel import Form

#: Seconds that a request may wait for its verdict before it is answered with the state of the job.
LONGEST_WAIT = 300.0
WAIT = 30.0


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VerifyRequest(_Message):
    """A kernel to judge. Equal requests are one job, however often they are sent."""

    task: str = Field(examples=["level1/relu"], description="Id of a packaged task, or the name of a problem file.")
    task_source: str = Field("", description="Text of the problem file; empty for a packaged task.")
    task_digest: str = Field("", description="Digest that the task must have here; empty to accept any.")
    source: str = Field(description="Text of the kernel.")
    language: str = Field("", description="Language of the kernel; empty for the device's.")
    form: Form | None = Field(None, description="`file` or `bundle`; null to tell by the text.")
    trusted: bool = Field(False, description="Whether kernel_gym wrote it; see `--trust-clients`.")


class JobState(_Message):
    """The state of a job, with the verdict once it is done."""

    id: str
    state: Literal["queued", "running", "done"]
    verdict: dict[str, Any] | None = None


class Health(_Message):
    """What the service runs on, and how busy it is."""

    status: Literal["ok"] = "ok"
    version: str
    verifier: str = Field(description="Digest of the verifier's sources: equal digests judge alike.")
    device: str
    language: str
    policy: str
    workers: int
    queued: int
    capacity: int


class TaskSummary(_Message):
    """A packaged task."""

    id: str
    category: str
    description: str
    digest: str


class TaskText(TaskSummary):
    """A packaged task with its module."""

    source: str
    flags: tuple[str, ...]


class Problem(_Message):
    """Why a request was refused, in one line."""

    error: str
