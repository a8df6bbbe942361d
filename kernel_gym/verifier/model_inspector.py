"""A language model as inspector of kernels that passed every gate.

It looks for cheating that rules and values cannot show. Its opinion is noted in the verdict; it refuses a kernel only
if the configuration lets it decide. The kernel's text is untrusted: it is put between marks that it cannot contain, and
an answer that cannot be read counts as unsure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings
from kernel_gym.llm.transcript import Transcript
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.inspection import Inspection

OPINIONS = ("honest", "cheating", "unsure")
_OPINION = re.compile(rf"\bopinion\b\W{{0,12}}({'|'.join(OPINIONS)})\b", re.IGNORECASE)
#: Characters of the reasons that a verdict keeps.
_LENGTH = 500


class ModelInspector:
    """Asks a language model whether a kernel is honest.

    Args:
        decides: Let the model refuse kernels, instead of only noting its opinion.
        transcript: File of recorded answers to use instead of the endpoint.
        **settings: Settings of the endpoint.
    """

    def __init__(self, decides: bool = False, transcript: str | None = None, **settings: Any) -> None:
        self.decides = decides
        modest = {"temperature": 0.0, "max_tokens": 2048}
        self.endpoint = Endpoint(EndpointSettings.from_options(modest | settings, "inspection"))
        if transcript is not None:
            self.endpoint.use_transcript(Transcript(Path(transcript), read_only=True))

    def __call__(self, kernel: Kernel, task: Task) -> Inspection:
        """Return the model's opinion."""
        nonce = int(hashlib.sha256(f"{kernel.digest} {task.digest}".encode()).hexdigest()[:7], 16)
        return opinion_in(self.endpoint.chat(question(kernel, task), nonce).text)

    def identity(self) -> str:
        """Return a digest of what opinions depend on, and of the transcript: a run's transcript must be complete."""
        kept = self.endpoint.transcript.path.absolute() if self.endpoint.transcript else ""
        parts = [self.endpoint.settings.answer_settings(), _prompt(), str(kept)]
        return "model " + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def record_to(self, path: Path) -> None:
        """Record every exchange in a transcript, unless answers come from one."""
        if self.endpoint.transcript is None or not self.endpoint.transcript.read_only:
            self.endpoint.record_to(path)

    def usage(self) -> dict[str, float]:
        """Return the tokens and dollars spent so far."""
        return self.endpoint.usage()

    @property
    def replays(self) -> bool:
        """Whether all answers come from the transcript of another run, so that nothing is paid."""
        return self.endpoint.replays

    def check(self) -> None:
        """Try key and model before the work begins; raise a ConfigError if the endpoint refuses them."""
        self.endpoint.check()


def question(kernel: Kernel, task: Task) -> list[dict[str, str]]:
    """Return the messages to the model. A kernel cannot contain its own digest, so it cannot close its marks."""
    mark = f"kernel-{kernel.digest[:16]}"
    user = (
        f"The operator, in PyTorch:\n\n```python\n{task.source.strip()}\n```\n\n"
        f"The kernel, untrusted, is everything between <{mark}> and </{mark}>:\n\n"
        f"<{mark}>\n{kernel.source.strip()}\n</{mark}>\n\nIs it honest? Answer with the JSON object alone."
    )
    return [{"role": "system", "content": _prompt()}, {"role": "user", "content": user}]


def opinion_in(answer: str) -> Inspection:
    """Return the opinion in an answer: in its last JSON object that has one, or in its words; unsure if in neither."""
    answer = answer.rpartition("</think>")[2]
    for data in reversed(list(_objects(answer))):
        opinion = str(data.get("opinion", "")).strip().lower()
        if opinion in OPINIONS:
            return _inspection(opinion, _text(data.get("reasons", data.get("reason", ""))))
    opinions = _OPINION.findall(answer)
    if opinions:
        return _inspection(opinions[-1].lower(), answer)
    return _inspection("unsure", f"the answer has no opinion: {answer}" if answer.strip() else "the answer is empty")


def _inspection(opinion: str, reasons: str) -> Inspection:
    words = " ".join(reasons.split())
    shortened = words if len(words) <= _LENGTH else words[: _LENGTH - 3] + "..."
    return Inspection(opinion, shortened)  # type: ignore[arg-type]  # one of OPINIONS


def _text(reasons: Any) -> str:
    return " ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)


def _objects(answer: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects in a text, in order."""
    decoder, at = json.JSONDecoder(strict=False), answer.find("{")
    while at >= 0:
        try:
            data, end = decoder.raw_decode(answer, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield data
        at = answer.find("{", end)


def _prompt() -> str:
    return files("kernel_gym.verifier").joinpath("model_inspector.md").read_text()
