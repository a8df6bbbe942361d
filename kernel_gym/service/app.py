"""The service: an ASGI application that judges kernels.

Answers are JSON. A refused request is answered with one line, `{"error": ...}`, and a status that says whose fault it
is. A verdict that takes longer than a request waits is fetched with the job's id; a client that goes away loses
nothing, because the job goes on and the same request finds it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException as StarletteHTTPException

from kernel_gym import suites
from kernel_gym.errors import DeviceUnavailable, InfrastructureError, KernelGymError, TaskError
from kernel_gym.kernel import Kernel
from kernel_gym.service.jobs import Job, Jobs, Overloaded
from kernel_gym.service.messages import (
    LONGEST_WAIT,
    WAIT,
    Health,
    JobState,
    Problem,
    TaskSummary,
    TaskText,
    VerifyRequest,
)
from kernel_gym.service.problem_tasks import ProblemTasks
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.cache import verifier_version
from kernel_gym.version import __version__

#: Largest request, in bytes. The longest public bundle has about 40 kB.
LARGEST = 1 << 20
#: Seconds after which a client that was sent away should ask again.
RETRY_AFTER = 2

Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the verdict.")]


class Metrics:
    """The service's figures for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.verdicts = Counter("kernel_gym_verdicts", "Verdicts by outcome.", ["outcome"], registry=self.registry)
        self.seconds = Histogram(
            "kernel_gym_verdict_seconds",
            "Seconds from request to verdict.",
            buckets=(0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
            registry=self.registry,
        )
        self.refused = Counter("kernel_gym_refused", "Refused requests by status.", ["status"], registry=self.registry)
        self.unfinished = Gauge("kernel_gym_unfinished_jobs", "Jobs that wait or run.", registry=self.registry)

    def done(self, verdict: Verdict, seconds: float) -> None:
        """Count a verdict."""
        self.verdicts.labels(verdict.outcome).inc()
        self.seconds.observe(seconds)


def make_app(
    verifier: Verifier,
    workers: int,
    capacity: int = 1000,
    share: int = 1000,
    tokens: Sequence[str] = (),
    trust_clients: bool = False,
) -> FastAPI:
    """Return the service.

    Args:
        verifier: Judges the kernels. The service closes it.
        workers: Kernels that the verifier judges at the same time, as `/health` tells clients.
        capacity: Jobs that may be unfinished at the same time; further requests are sent away with 503.
        share: Unfinished jobs that one client may have; further requests of it are sent away with 429.
        tokens: Clients must send one of them as `Authorization: Bearer TOKEN`. Empty: everybody may ask.
        trust_clients: Believe a client that says that kernel_gym wrote a kernel. Its values are then drawn from the
            published secret, as on the client's own machine, so that runs repeat.

    Returns:
        The application.
    """
    metrics = Metrics()
    jobs = Jobs(verifier, capacity, share, metrics.done)
    problem_tasks = ProblemTasks(jobs.place)
    metrics.unfinished.set_function(jobs.unfinished)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(verifier.close)

    app = FastAPI(
        title="kernel_gym verification",
        version=__version__,
        lifespan=lifespan,
        responses={status: {"model": Problem} for status in (401, 411, 413, 422, 429, 503)},
    )
    client = Depends(_client_of(tokens))
    _answer_errors_in_one_line(app, metrics)

    @app.post("/verify", responses={202: {"model": JobState}, 404: {"model": Problem}, 409: {"model": Problem}})
    async def verify(body: VerifyRequest, response: Response, client: str = client, wait: Wait = WAIT) -> JobState:
        """Judge a kernel. 200 with the verdict, or 202 with the job if it takes longer than `wait`."""
        job = await run_in_threadpool(jobs.submit, _kernel(body), await _task(body, client), client)
        return await _state(job, wait, response)

    async def _task(body: VerifyRequest, client: str) -> Task:
        """Return the task of a request, and refuse one that differs from the client's."""
        if body.task_source:
            task = await problem_tasks.load(body.task_source, client)
        else:
            task = await run_in_threadpool(_packaged_task, body.task)
        if body.task_digest and body.task_digest != task.digest:
            raise HTTPException(409, f"{body.task}: the service has another version of it than the client")
        return task

    def _kernel(body: VerifyRequest) -> Kernel:
        language = body.language or verifier.device.language
        return Kernel(body.source, language, trusted=body.trusted and trust_clients, form=body.form)

    @app.get("/verify/{id}", responses={202: {"model": JobState}, 404: {"model": Problem}}, dependencies=[client])
    async def job(id: str, response: Response, wait: Wait = WAIT) -> JobState:
        """Return the state of a job. 404 if it is forgotten: send the request again."""
        job = jobs.find(id)
        if job is None or job.failed:
            raise HTTPException(404, "no such job: send the request again")
        return await _state(job, wait, response)

    @app.get("/tasks", dependencies=[client])
    def tasks(suite: str = "level1") -> list[TaskSummary]:
        """List the tasks of a packaged suite."""
        if suite not in suites.SUITES:
            raise HTTPException(404, f"no suite {suite!r}; known: {', '.join(suites.SUITES)}")
        return [TaskSummary(**_summary(task)) for task in suites.load_suite(suite)]

    @app.get("/tasks/{suite}/{name}", dependencies=[client])
    def task(suite: str, name: str) -> TaskText:
        """Return a packaged task with its module."""
        task = _packaged_task(f"{suite}/{name}")
        return TaskText(**_summary(task), source=task.source, flags=task.flags)

    @app.get("/health")
    def health() -> Health:
        """Return what the service runs on and how busy it is; 503 if its device cannot be used."""
        device = verifier.device
        if reason := device.unavailable_reason():
            raise HTTPException(503, f"{device.name}: {reason}")
        return Health(
            version=__version__,
            verifier=verifier_version(),
            device=device.name,
            language=device.language,
            policy=verifier.policy,
            workers=workers,
            queued=jobs.unfinished(),
            capacity=capacity,
        )

    @app.get("/metrics", response_class=Response)
    def figures() -> Response:
        """Return the figures in Prometheus' text format."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return app


def _client_of(tokens: Sequence[str]) -> Callable[..., str]:
    """Return a dependency that names the client: a digest of its token, or its address if no tokens are needed."""
    digests = {_digest(token) for token in tokens}

    def client(request: Request, authorization: Annotated[str, Header()] = "") -> str:
        if not digests:
            return request.client.host if request.client else ""
        sent = _digest(authorization.removeprefix("Bearer ").strip())
        if not any(hmac.compare_digest(sent, digest) for digest in digests):
            raise HTTPException(401, "a token is needed: send `Authorization: Bearer TOKEN`")
        return sent

    return client


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _answer_errors_in_one_line(app: FastAPI, metrics: Metrics) -> None:
    """Answer every refusal with `{"error": ...}`, and count it."""

    def refusal(status: int, message: str) -> JSONResponse:
        metrics.refused.labels(str(status)).inc()
        headers = {"Retry-After": str(RETRY_AFTER)} if status in (429, 503) else {}
        return JSONResponse({"error": " ".join(message.split())}, status, headers)

    @app.exception_handler(KernelGymError)
    async def refused(_: Request, error: KernelGymError) -> JSONResponse:
        return refusal(_status(error), str(error))

    @app.exception_handler(StarletteHTTPException)
    async def not_found(_: Request, error: StarletteHTTPException) -> JSONResponse:
        return refusal(error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return refusal(422, f"{'.'.join(map(str, first['loc'][1:])) or 'body'}: {first['msg']}")

    @app.middleware("http")
    async def limit(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        length = request.headers.get("content-length", "")
        known = re.fullmatch("[0-9]+", length)
        if request.method == "POST" and (not known or "transfer-encoding" in request.headers):
            return refusal(411, "send the length of the body: Content-Length")
        if known and (len(length) > 18 or int(length) > LARGEST):
            return refusal(413, f"the body has more than {LARGEST} bytes")
        return await call_next(request)


def _status(error: KernelGymError) -> int:
    """Return the status of an error: 4xx if another request may do better, 503 if another time may."""
    if isinstance(error, Overloaded):
        return 429 if error.client else 503
    if isinstance(error, (DeviceUnavailable, InfrastructureError)):
        return 503
    return 422


async def _state(job: Job, wait: float, response: Response) -> JobState:
    """Return the state of a job, after waiting for its verdict; a client that goes away does not cancel the job."""
    waiting = asyncio.wrap_future(job.future)
    await asyncio.wait([waiting], timeout=wait)
    if waiting.done():
        return JobState(id=job.id, state="done", verdict=waiting.result().to_json())
    response.status_code = 202
    return JobState(id=job.id, state="running" if job.running else "queued")


def _summary(task: Task) -> dict[str, str]:
    return {"id": task.id, "category": task.category, "description": task.description, "digest": task.digest}


def _packaged_task(id: str) -> Task:
    """Return a packaged task; paths are not looked up, they would be files of the service's machine."""
    suite, _, name = id.partition("/")
    if suite not in suites.SUITES or "/" in name or name.endswith(".py"):
        raise HTTPException(404, f"no packaged task {id!r}: send the text of a problem file as task_source")
    try:
        return suites.find_task(id)
    except TaskError as error:
        raise HTTPException(404, str(error)) from error
