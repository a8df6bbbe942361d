"""Everything with a real model: `make test-model` installs a small one and runs this.

The model is far too small to write a kernel. What is tested is the way to and from a real server: prompts that it
reads, answers that it makes up, its restart in the middle of a run, and the same run again without it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_model import LocalModel
from repository import ROOT

from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings

WEIGHTS = os.environ.get("KERNEL_GYM_LOCAL_MODEL", "")
ATTEMPTS = 2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not WEIGHTS, reason="make test-model installs the model and says where it is"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    model = LocalModel(Path(WEIGHTS), tmp_path_factory.mktemp("model") / "log")
    model.start()
    yield model
    model.kill()


def train(*words: str, url: str = "") -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "scripts" / "train.py"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment | ({"OPENAI_BASE_URL": url} if url else {}),
    )


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return output


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def curve(folder: Path) -> list[Any]:
    return [
        record | {"verdict": {key: value for key, value in record["verdict"].items() if key != "seconds"}}
        for record in Journal.read(folder / "results.jsonl")
    ]


def test_a_run_survives_a_restart_and_replay_gives_the_same_curve(server: LocalModel, tmp_path: Path) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    small = [f"--set=env.author_options.{option}" for option in ("context_tokens=2000", "max_tokens=96", "retries=60")]
    words = ("--author", "openai", "--model", "smollm2", "--suite", "basics", "--budget", str(ATTEMPTS), *small)
    process = train(*words, "--out", str(run), url=server.url)
    while not lines(run / "transcript.jsonl") and process.poll() is None:
        time.sleep(0.1)
    server.kill()
    time.sleep(3)
    assert process.poll() is None, process.communicate()
    server.start()
    print(finish(process))
    assert len(curve(run)) == ATTEMPTS == lines(run / "transcript.jsonl")
    usage = json.loads((run / "usage.json").read_text())["author"]
    assert usage["tokens_in"] > 1000 * ATTEMPTS
    assert usage["tokens_out"] > ATTEMPTS

    server.kill()
    finish(train("--replay", str(run), "--out", str(again)))
    assert curve(again) == curve(run)
    assert json.loads((again / "usage.json").read_text())["author"] == usage
    finish(train(*words, "--out", str(run)))  # complete: nothing is asked, nothing has to be there
    server.start()


def test_a_real_server_streams(server: LocalModel) -> None:
    settings = EndpointSettings(model="smollm2", base_url=server.url, stream=True, max_tokens=16, temperature=0.0)
    question = [{"role": "user", "content": "Say hello."}]
    streamed = Endpoint(settings).chat(question, 1)
    whole = Endpoint(settings.model_copy(update={"stream": False})).chat(question, 1)
    assert streamed == whole
    assert 0 < streamed.tokens_out <= 16
