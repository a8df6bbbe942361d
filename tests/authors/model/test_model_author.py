"""Tests of the model author: its prompts, how it reads answers, and its example kernel."""

import copy
import json
import pickle
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from model_server import answering, raw, saying, serving

from kernel_gym import suites
from kernel_gym.authors.contract import Author, Context, Note, Recording, StartPoint
from kernel_gym.authors.model import ModelAuthor, ReplayAuthor
from kernel_gym.authors.model.prompt import CHILDREN, VERSIONS, messages
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import CHARACTERS_PER_TOKEN
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Profile, Uncompilable
from kernel_gym.verifier import Verifier

EXAMPLE = files("kernel_gym.authors.model").joinpath("prompts", "1", "example.cpp").read_text()
SCALE_AND_SHIFT = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1


rows = 37
columns = 1009


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def relu() -> Task:
    return suites.find_task("level1/relu")


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def user_message(task: Task, context: Context = (), start: StartPoint | None = None, budget: int = 24_000) -> str:
    system, user = messages(task, context, start, budget)
    assert (system["role"], user["role"]) == ("system", "user")
    return user["content"]


def test_the_examples_that_models_are_shown_pass_the_verifier(tmp_path: Path) -> None:
    formulas = {"scale_and_shift": "2 * x + 1", "several_calls": "(x + 3) ** 2 * torch.exp(-x)"}
    for name, formula in formulas.items():
        (tmp_path / f"{name}.py").write_text(SCALE_AND_SHIFT.replace("2 * x + 1", formula))
    first, second = (suites.find_task(str(tmp_path / f"{name}.py")) for name in formulas)
    systems = [messages(first, (), None, 24_000, version=version)[0]["content"] for version in VERSIONS]
    blocks = [re.findall(r"```cpp\n(.*?)```", system, re.DOTALL) for system in systems]
    pairs = [(Kernel(sources[0]), first) for sources in blocks]
    for sources in blocks[2:]:
        calls = re.search(r" *Muls\(outLocal.*\n.*Adds\(outLocal.*\n", sources[0])
        assert calls is not None
        pairs.append((Kernel(sources[0].replace(calls[0], sources[1])), second))
    with Verifier(AscendSim(), cache=tmp_path / "verdicts") as verifier:
        for verdict in verifier.verify_all(pairs):
            assert verdict.feasible, verdict.feedback
    assert blocks[0] == [EXAMPLE]


def test_version_4_is_version_3_with_about_half_the_text(relu: Task) -> None:
    context = (Note("api", "Relu and LeakyRelu\nRelu(dst, src, n);"), Note("api", "The file to hand in\n..."))
    third, fourth = (messages(relu, context, None, 24_000, version=version) for version in (3, 4))
    assert len(fourth[0]["content"]) < 0.5 * len(third[0]["content"])
    ending = "# Your answer"
    assert fourth[1]["content"].split(ending)[0] == third[1]["content"].split(ending)[0]
    texts = [messages(relu, context, None, 24_000, "cuda", version)[0] for version in (3, 4)]
    assert texts[0] == texts[1]
    assert ModelAuthor(model="m", prompt_version=4).identity() != ModelAuthor(model="m", prompt_version=3).identity()


def test_a_draft_prompt_has_the_task_its_sizes_and_the_memories_by_kind(relu: Task) -> None:
    context = (
        Note("practice", "Use two buffers."),
        Note("trace", "// wrong\nint x;", "int x;", Uncompilable("no kernel_launch"), same_task=True),
        Note("trace", "// right\nint y;", "int y;", Feasible("fine", latency=5.0)),
        Note("experience", "Adds takes a scalar."),
    )
    text = user_message(relu, context)
    assert relu.source in text
    assert "For example: inputs" in text
    assert "Timed: inputs" in text
    assert "# Good practice\n\nUse two buffers." in text
    assert "# An earlier attempt at this operator: uncompilable\n\n```cpp\n// wrong" in text
    assert "# A kernel for another operator: feasible\n\n```cpp\n// right" in text
    assert "# Experience\n\nAdds takes a scalar." in text


def test_hidden_sizes_are_not_in_the_prompt(relu: Task) -> None:
    hidden = {str(size) for case in relu.hidden for _, size in case.sizes if size > 100}
    shown = {str(size) for case in (relu.public, relu.timing) for _, size in case.sizes}
    assert hidden - shown
    assert not any(size in user_message(relu) for size in hidden - shown)


def test_a_refining_prompt_has_the_kernel_its_profile_and_its_children(relu: Task) -> None:
    verdict = Feasible("fine", latency=12.345, profile=Profile(bottleneck="mte2", diagnosis="Copies wait for copies."))
    children = tuple(f"child {i}: slower" for i in range(CHILDREN + 5))
    text = user_message(
        relu, (Note("practice", "Use two buffers."),), StartPoint(Kernel("int start;"), verdict, children)
    )
    assert "correct, 12.35 us" in text or "correct, 12.34 us" in text
    assert "```cpp\nint start;\n```" in text
    assert "Copies wait for copies." in text
    assert "child 4:" not in text
    assert all(f"- {child}" in text for child in children[-CHILDREN:])
    order = [text.index(part) for part in (relu.source, "int start;", "Copies wait", "- child 16", "Use two buffers")]
    assert order == sorted(order)


def test_the_budget_holds_and_picks_come_before_pages(relu: Task) -> None:
    pages = tuple(Note("api", f"Page{i} " + "p" * 2000) for i in range(20))
    picks = tuple(Note("practice", f"Pick{i} " + "q" * 3000) for i in range(5))
    least = sum(len(message["content"]) for message in messages(relu, (), None, 1)) / CHARACTERS_PER_TOKEN
    for room in (0, 500, 2000, 6000, 40_000):
        budget = int(least) + room
        text = user_message(relu, pages + picks, budget=budget)
        whole = len(messages(relu, (), None, 1)[0]["content"]) + len(text)
        assert whole <= (budget + 1) * CHARACTERS_PER_TOKEN
        shown = [f"{name}{i}" in text for name, count in (("Pick", 5), ("Page", 20)) for i in range(count)]
        assert shown == sorted(shown, reverse=True)
        assert all(shown) == (room == 40_000)
    assert text.index("Pick4") < text.index("Page0")


def test_a_memory_that_does_not_fit_is_cut_or_left_out(relu: Task) -> None:
    least = int(sum(len(message["content"]) for message in messages(relu, (), None, 1)) / CHARACTERS_PER_TOKEN) + 1
    long = Note("trace", "x" * 4000, "x")
    assert "x\n[cut]\n```" in user_message(relu, (long,), budget=least + 800)
    assert "xxx" not in user_message(relu, (long, Note("practice", "short")), budget=least + 400)
    assert "short" in user_message(relu, (long, Note("practice", "short")), budget=least + 400)


def test_the_same_random_generator_sends_the_same_request(relu: Task) -> None:
    with serving(saying(f"```cpp\n{EXAMPLE}```")) as server:
        author = ModelAuthor(model="m", base_url=server.url)
        for seed in (1, 1, 2):
            assert author.write(relu, (), None, np.random.default_rng(seed)) == Kernel(EXAMPLE)
        first, again, other = server.requests
    assert first == again
    assert {key: value for key, value in first.items() if key != "seed"} == {
        key: value for key, value in other.items() if key != "seed"
    }
    assert first["seed"] != other["seed"]


def test_settings_reach_the_server_and_can_be_left_out(relu: Task) -> None:
    rng = np.random.default_rng(0)
    with serving(saying("nothing")) as server:
        ModelAuthor(model="m", base_url=server.url, temperature=0.25, max_tokens=77).write(relu, (), None, rng)
        ModelAuthor(
            model="m",
            base_url=server.url,
            temperature=None,
            max_tokens=88,
            limit_name="max_completion_tokens",
            send_seed=False,
            extra={"reasoning_effort": "low"},
        ).write(relu, (), None, rng)
        usual, unusual = server.requests
    assert (usual["temperature"], usual["max_tokens"]) == (0.25, 77)
    assert set(usual) == {"model", "messages", "temperature", "max_tokens", "seed"}
    assert set(unusual) == {"model", "messages", "max_completion_tokens", "reasoning_effort"}


def test_a_refusal_is_a_kernel_without_source(relu: Task) -> None:
    with serving(saying(None, "content_filter"), saying("I'd rather not.")) as server:
        author = ModelAuthor(model="m", base_url=server.url)
        for _ in range(2):
            assert author.write(relu, (), None, np.random.default_rng(0)).source == ""


def test_a_diff_refines_the_start_point(relu: Task) -> None:
    start = StartPoint(Kernel(EXAMPLE), Feasible("fine", latency=1.0))
    diff = "```diff\n@@ -1 +1 @@\n-    tiling.tile = 8192;\n+    tiling.tile = 4096;\n```"
    with serving(saying(diff)) as server:
        kernel = ModelAuthor(model="m", base_url=server.url).write(relu, (), start, np.random.default_rng(0))
    assert kernel.source == EXAMPLE.replace("8192", "4096")
    assert not kernel.trusted


def test_the_author_meets_its_contracts_and_can_be_copied(relu: Task, tmp_path: Path) -> None:
    with serving(answering(lambda body: f"```cpp\n// {body['seed']}\n{EXAMPLE}```")) as server:
        author = ModelAuthor(model="m", base_url=server.url)
        author.record_to(tmp_path / "transcript.jsonl")
        assert isinstance(author, Author)
        assert isinstance(author, Recording)
        kernels = [
            writer.write(relu, (), None, np.random.default_rng(3))
            for writer in (author, copy.deepcopy(author), pickle.loads(pickle.dumps(author)))
        ]
    assert len(set(kernels)) == 1
    assert author.identity() == pickle.loads(pickle.dumps(author)).identity()
    assert author.identity() != ModelAuthor(model="m", temperature=0.1).identity()


def test_replay_answers_the_same_with_the_settings_of_the_transcript(relu: Task, tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    with serving(saying(f"```cpp\n{EXAMPLE}```")) as server:
        author = ModelAuthor(model="m", base_url=server.url, temperature=0.3, price_in=1.0, price_out=1.0)
        author.record_to(path)
        kernel = author.write(relu, (), None, np.random.default_rng(0))
    replay = ReplayAuthor(str(path), price_in=1.0, price_out=1.0)
    replay.record_to(tmp_path / "other.jsonl")
    assert replay.write(relu, (), None, np.random.default_rng(0)) == kernel
    assert replay.usage() == author.usage()
    assert replay.endpoint.spent == 0
    assert not (tmp_path / "other.jsonl").exists()
    with pytest.raises(KernelGymError, match="no answer to this request"):
        replay.write(relu, (), None, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "model: Field required (for example --model NAME)"),
        ({"model": "m", "temperature": -1}, "temperature"),
        ({"model": "m", "colour": "red"}, "colour"),
        ({"model": "m", "spending_limit": 5}, "needs price_in"),
        ({"model": "m", "api_key": "sk-1"}, "OPENAI_API_KEY"),
        ({"model": "m", "base_url": "http://me:secret@host/v1"}, "OPENAI_API_KEY"),
        ({"model": "m", "context_tokens": "many"}, "context_tokens"),
    ],
)
def test_wrong_settings_are_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        ModelAuthor(**settings)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "sk-1" not in str(error.value)
    assert "secret@" not in str(error.value)


def test_the_prompt_is_in_the_language_of_the_device() -> None:
    relu = suites.find_task("level1/relu")
    system = messages(relu, (), None, 24_000, "cuda")[0]["content"]
    assert "<<<" in system
    assert "NVRTC" in system
    assert "AscendC" not in system
    assert "kernel_operator.h" not in system


def test_a_language_without_a_prompt_is_refused() -> None:
    with pytest.raises(ConfigError, match="no prompt for 'klingon'; known: ascendc, cuda"):
        ModelAuthor(model="m", base_url="http://localhost:1/v1", language="klingon")


@pytest.mark.parametrize(
    ("limit", "max_tokens", "says"),
    [
        (32768, 8192, "run with --set env.author_options.context_tokens=22118"),
        (8192, 8192, "run with --set env.author_options.context_tokens=3686 --set env.author_options.max_tokens=4096"),
        (None, 8192, "lower author_options.context_tokens, now 24000, or max_tokens, now 8192"),
    ],
)
def test_a_server_that_refuses_the_length_is_one_line_that_names_the_option(
    relu: Task, limit: int | None, max_tokens: int, says: str
) -> None:
    refusal = f"This model's maximum context length is {limit} tokens." if limit else "It exceeds the context window."
    with serving(raw(json.dumps({"error": {"message": refusal}}).encode(), 400)) as server:
        author = ModelAuthor(model="m", base_url=server.url, retries=0, max_tokens=max_tokens)
        with pytest.raises(ConfigError, match="refused the length: ") as error:
            author.write(relu, (), None, np.random.default_rng(0))
    assert str(error.value).endswith(f"; {says}")
    assert "\n" not in str(error.value)


BUNDLE_EXAMPLE = files("kernel_gym.authors.model").joinpath("prompts", "1", "example_bundle.txt").read_text()


def test_a_model_is_asked_for_a_bundle_and_its_answer_is_one(relu: Task) -> None:
    with serving(saying(f"```python\n{BUNDLE_EXAMPLE}```")) as server:
        author = ModelAuthor(model="m", base_url=server.url, submission="bundle")
        kernel = author.write(relu, (), None, np.random.default_rng(0))
        asked = server.requests[0]["messages"][0]["content"]
    assert (kernel.form, kernel.source) == ("bundle", BUNDLE_EXAMPLE)
    assert "The file assigns six strings" in asked
    assert BUNDLE_EXAMPLE.strip() in asked
    assert author.identity() != ModelAuthor(model="m", base_url="http://none").identity()


def test_bundles_in_prompts_are_shown_as_python(relu: Task) -> None:
    verdict = Feasible("Correct.", latency=9.0)
    start = StartPoint(Kernel(BUNDLE_EXAMPLE), verdict)
    user = messages(relu, (Note("trace", BUNDLE_EXAMPLE, BUNDLE_EXAMPLE, verdict),), start, 24_000)[1]["content"]
    assert user.count(f"```python\n{BUNDLE_EXAMPLE.strip()}") == 2


def test_bundles_are_ascend_c() -> None:
    with pytest.raises(ConfigError, match="submission is file, or bundle for ascendc"):
        ModelAuthor(model="m", base_url="http://none", submission="bundle", language="cuda")


@pytest.mark.slow
def test_the_example_bundle_is_feasible(tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    file = tmp_path / "affine.py"
    file.write_text(SCALE_AND_SHIFT)
    with Verifier(AscendSim(), cache=False, unsafe=True, policy="reference") as verifier:
        verdict = verifier.verify(Kernel(BUNDLE_EXAMPLE), suites.find_task(str(file), trust=True))
    assert verdict.feasible, verdict.feedback
