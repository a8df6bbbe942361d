"""Studies whose author is a language model: one server for all runs, and an archive that replays them without it.

The runs ask the endpoint at `OPENAI_BASE_URL`. `serving` starts a server for a model file and sets that variable, so
that the answers of all runs are written in one batch.

The archive has the configuration, the journal and the transcript of every run. A run that is imported from it is
resumed like any other: agents choose again, every request is composed again and found in the transcript, and every
attempt must equal the recorded one.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kernel_gym import activity
from kernel_gym.envs import factories
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import Shard, StudyDefinition
from kernel_gym.llm.local import server
from kernel_gym.llm.local.endpoints import check_batched
from kernel_gym.llm.local.installation import existing_file, model_name
from kernel_gym.llm.local.server import LlamaServer
from kernel_gym.verifier.secret import ENVIRONMENT as SECRET_VARIABLE

#: What values and hidden sizes are drawn from in every such study, so that verdicts are the same on every machine. It
#: is published: the model's answers are written before anyone judges them, and no author is shown it.
SECRET = "kernel_gym model studies"
#: Where the runs find the model.
ADDRESS_VARIABLE = "OPENAI_BASE_URL"
#: Files of a run that its replay and its figures need; a run that solved nothing has no reference latencies.
FILES = ("config.yaml", "provenance.json", "results.jsonl", "transcript.jsonl", "references.json")
#: The file in a study's folder that says which study it holds, and what it tests.
STUDY_FILE = "study.yaml"
#: What an archive says about the origin of a run and of its resumptions, which name the attempt that they begin with.
ORIGIN = ("kernel_gym", "commit", "python", "machine", "attempt")
#: The archive in a study's folder.
ARCHIVE = "runs.tar.xz"
#: Most answers of one batch.
LARGEST_BATCH = 384


def asks_model(definition: StudyDefinition) -> bool:
    """Return whether the author of a study is a language model."""
    return bool(definition.settings.get("env", {}).get("author") == "openai")


@contextmanager
def judging(unsafe: bool) -> Iterator[None]:
    """Judge with the published secret of these studies, unless another one is set; if `unsafe`, in any sandbox."""
    weak = "1" if unsafe else os.environ.get(factories.UNSAFE, "")
    with _variable(SECRET_VARIABLE, os.environ.get(SECRET_VARIABLE) or SECRET), _variable(factories.UNSAFE, weak):
        yield


@contextmanager
def serving(author: str, model: str, shards: Sequence[Shard], parallel: int) -> Iterator[None]:
    """Serve a model for the runs of a study.

    Args:
        author: How the model is asked: `batched` on a GPU, `local` by llama.cpp, `openai` at an endpoint that runs.
        model: A `.gguf` file or the name of an installed model, for `batched` and `local`.
        shards: The runs.
        parallel: Runs at once.

    Raises:
        ConfigError: The model or what serves it is missing.
    """
    if author == "openai":
        yield
        return
    options = shards[0].config.env.author_options
    if (asked := str(options["model"])) != model_name(model):
        raise ConfigError(f"the runs of this study ask for the model {asked}: name its file with --model")
    # The prompt is measured by its characters, so there is room for a tenth more. It always has the kernel to refine or
    # repair, which is as long as an answer.
    context = int(options["context_tokens"]) * 11 // 10 + 2 * int(options["max_tokens"])
    if author == "batched":
        requests = min(parallel, len(shards)) * max(len(shard.tasks) for shard in shards)
        host = LlamaServer(check_batched(model), context, min(requests, LARGEST_BATCH), command=server.BATCHED)
    else:
        server.check_installed()
        host = LlamaServer(existing_file(model), context)
    activity.prepare(f"loading {host.file.name}")
    try:
        with _variable(ADDRESS_VARIABLE, host.start()):
            yield
    finally:
        host.stop()


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while; runs in processes of their own get it too."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def as_recorded(study: Study) -> Study:
    """Return a study whose runs have the settings that they were recorded with; defaults may have changed since.

    Raises:
        KernelGymError: A run of the study is not in its folder.
    """
    for shard in study.shards:
        if not RunFolder(study.path(shard)).begun:
            raise KernelGymError(
                f"the archive has no run {shard.label}: it is of another size, budget or choice of agents"
            )
    return replace(study, shards=tuple(replace(shard, config=load_config(study.path(shard))) for shard in study.shards))


def export_runs(study: Study, path: Path) -> None:
    """Write the complete runs of a study, and which study it is, into one compressed file."""
    folders = [study.path(shard) for shard in sorted(study.complete(), key=lambda shard: shard.label)]
    files = [study.folder / STUDY_FILE, *(folder / name for folder in folders for name in FILES)]
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for file in files:
            if file.exists():
                content = _origin(file) if file.name == "provenance.json" else file.read_bytes()
                entry = tarfile.TarInfo(str(file.relative_to(study.folder)))
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


def _origin(file: Path) -> bytes:
    """Return the provenance of a run without the commands, which have paths of the machine."""
    first = json.loads(file.read_text())
    parts = [{name: part[name] for name in ORIGIN if name in part} for part in (first, *first.get("resumed", ()))]
    return json.dumps(parts[0] | ({"resumed": parts[1:]} if parts[1:] else {}), indent=1).encode()


def import_runs(archive: Path, folder: Path) -> None:
    """Unpack the runs of an archive into a study's folder, from where they can be replayed.

    Args:
        archive: A file that `export_runs` wrote.
        folder: The folder; runs that it has already are left as they are.

    Raises:
        KernelGymError: The file is no archive of runs.
    """
    try:
        with tarfile.open(archive, "r:xz") as content:
            entries = [entry for entry in content.getmembers() if not (folder / entry.name).exists()]
            if any(Path(entry.name).name not in (*FILES, STUDY_FILE) for entry in entries):
                raise KernelGymError(f"{archive} holds other files than those of runs")
            folder.mkdir(parents=True, exist_ok=True)
            content.extractall(folder, entries, filter="data")
    except (OSError, tarfile.TarError, EOFError) as error:
        raise KernelGymError(f"{archive} is no archive of runs: {error}") from error
