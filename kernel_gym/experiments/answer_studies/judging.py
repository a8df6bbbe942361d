"""Has the answers of a study verified. An interrupted stage goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gym import plugins, suites
from kernel_gym.errors import DeviceUnavailable
from kernel_gym.experiments.answer_studies.contexts import DEVICES
from kernel_gym.experiments.answer_studies.study_folder import Answer, StudyFolder
from kernel_gym.verdict import Uncompilable, Verdict
from kernel_gym.verifier import Verifier

#: Values and hidden sizes are drawn from this on every machine, so that answers can be judged again to the same
#: figures. It is published: answers are written before anyone judges them, and no author is shown it.
SECRET = b"kernel_gym answer studies"
#: Answers that are judged before their verdicts are written.
PART = 64


def judge(
    folder: StudyFolder,
    workers: int = 1,
    unsafe: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, str]:
    """Judge all answers that have no verdict yet.

    Args:
        folder: The study's folder.
        workers: Verifications at once.
        unsafe: Let kernels run although the sandbox of this machine is too weak for untrusted ones.
        progress: Called with the verdicts made and the missing ones at the start.

    Returns:
        The devices that cannot be used here, with the reason; their answers stay without a verdict.
    """
    missing = [answer for answer in folder.answers() if answer.reply is not None and answer.verdict is None]
    unusable: dict[str, str] = {}
    done = 0
    # The simulator is last: it runs on every machine.
    for name in sorted({answer.question.device for answer in missing}, reverse=True):
        answers = [answer for answer in missing if answer.question.device == name]
        try:
            with _verifier(name, workers, unsafe) as verifier:
                for start in range(0, len(answers), PART):
                    part = answers[start : start + PART]
                    folder.add_verdicts(_judged(part, verifier))
                    done += len(part)
                    progress(done, len(missing))
        except DeviceUnavailable as error:
            unusable[name] = str(error)
    return unusable


def _verifier(name: str, workers: int, unsafe: bool) -> Verifier:
    device = plugins.make("kernel_gym.devices", DEVICES[name], {})
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(reason)
    return Verifier(device, workers=workers, unsafe=unsafe, secret=SECRET)


def _judged(answers: list[Answer], verifier: Verifier) -> list[tuple[str, Verdict]]:
    """Return the verdicts by the keys of the answers; an answer without a kernel needs no verifier."""
    written = [answer for answer in answers if answer.kernel.source.strip()]
    pairs = [(answer.kernel, suites.find_task(answer.question.task)) for answer in written]
    verdicts = dict(zip((answer.key for answer in written), verifier.verify_all(pairs), strict=True))
    empty = Uncompilable("the author gave no answer: there is no source to compile")
    return [(answer.key, verdicts.get(answer.key, empty)) for answer in answers]
