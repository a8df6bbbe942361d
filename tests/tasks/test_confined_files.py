"""Problem files of others: their code runs in a confined process, and what it does there is one clear line here."""

import io
import json
import os
import signal
import struct
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from kernel_gym.confinement import python_process
from kernel_gym.confinement.forked_process import ForkServer
from kernel_gym.confinement.programs import programs
from kernel_gym.errors import InfrastructureError, ProblemFileDied, TaskError
from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.tasks import confined_instance, messages
from kernel_gym.tasks.graph import Call, Graph
from kernel_gym.tasks.messages import Response
from kernel_gym.tasks.specs import Case, Domain, InputSpec, Signature, TensorSpec
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.trials import Counts, Trial
from kernel_gym.verifier.reference import with_fixed
from kernel_gym.verifier.value_sets import References
from kernel_gym.verifier.values import draw

PROBLEMS = Path(__file__).parent / "problems"
GOOD = """
import torch
import torch.nn as nn
rows, columns = 64, 96
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(rows, columns)]
def get_init_inputs():
    return []
"""

pytestmark = pytest.mark.skipif(
    programs().confinement.tier not in python_process.TRUSTWORTHY, reason="this machine's sandbox is too weak"
)


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    """Keep derived sizes out of the user's cache; the built programs stay where they are."""
    monkeypatch.setattr("kernel_gym.suites.problem_files.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("KERNEL_GYM_TRUST", raising=False)


def load(folder: Path, text: str | bytes) -> Task:
    path = folder / "mine.py"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return find_task(str(path))


def fails(folder: Path, text: str | bytes) -> str:
    """Return the line that says why a problem file cannot be loaded."""
    with pytest.raises(TaskError) as caught:
        load(folder, text)
    line = str(caught.value)
    assert "\n" not in line
    assert "Traceback" not in line
    return line


def at_import(statement: str) -> str:
    return f"{statement}\n{GOOD}"


def in_forward(statement: str) -> str:
    return GOOD.replace("return torch.relu(x)", f"{statement}\n        return torch.relu(x)")


@pytest.mark.parametrize(
    "name",
    [
        "odd/7_NestedInputs.py",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("odd/8_TrainingModule.py", "level1/19_ReLU.py")),
    ],
)
def test_a_confined_file_gives_what_a_trusted_one_gives(name: str):
    path = str(PROBLEMS / name)
    confined, trusted = find_task(path), find_task(path, trust=True)
    assert confined.confined
    assert not trusted.confined
    assert confined.cases == trusted.cases
    assert confined.digest == trusted.digest
    for case in (confined.public, confined.timing):
        ours, theirs = confined.instance(case), trusted.instance(case)
        assert ours.signature == theirs.signature
        assert ours.graph() == theirs.graph()
    ours, theirs = confined.instance(confined.public), trusted.instance(trusted.public)
    generator = torch.Generator().manual_seed(5)
    values = [
        torch.rand(spec.shape, generator=generator)  # a variance is not negative
        if "float" in spec.dtype
        else torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype))
        for spec in ours.signature.inputs
    ]
    assert ours.fixed_inputs().keys() == theirs.fixed_inputs().keys()
    for position, tensor in theirs.fixed_inputs().items():
        assert torch.equal(ours.fixed_inputs()[position], tensor)
    for dtype in (None, torch.float64):
        for mine, other in zip(ours.evaluate(values, dtype), theirs.evaluate(values, dtype), strict=True):
            assert mine.dtype == other.dtype
            assert torch.equal(mine, other)


DRAWING = GOOD.replace("return torch.relu(x)", "return x * self.mask + self.table").replace(
    "nn.Module):\n",
    """nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = nn.Buffer((torch.rand(columns) < 0.5).float())
        self.table = nn.Buffer(torch.arange(columns).float())
""",
)


def test_what_a_confined_constructor_draws_is_what_a_trusted_one_draws(tmp_path):
    confined = load(tmp_path, DRAWING)
    trusted = find_task(str(tmp_path / "mine.py"), trust=True)
    ours, theirs = (task.instance(task.public) for task in (confined, trusted))
    assert ours.drawn_inputs() == theirs.drawn_inputs()
    assert [ours.signature.inputs[position].name for position in ours.drawn_inputs()] == ["mask"]
    assert [ours.signature.inputs[position].name for position in ours.fixed_inputs()] == ["table"]
    assert all(map(torch.equal, ours.own_inputs(5), theirs.own_inputs(5)))


@pytest.mark.parametrize(("text", "calls"), [(GOOD, []), (DRAWING, ["own_inputs"] * 3)])
def test_one_message_tells_what_a_confined_constructor_draws(tmp_path, monkeypatch, text, calls):
    instance, sent = load(tmp_path, text).instance(Case("new", "hidden", (("rows", 9),))), []
    call = confined_instance.ConfinedInstance._call
    monkeypatch.setattr(
        confined_instance.ConfinedInstance,
        "_call",
        lambda self, method, *others, **named: sent.append(method) or call(self, method, *others, **named),
    )
    rng = np.random.default_rng(0)
    values = draw(instance.signature, "normal", 0, rng)
    state = rng.bit_generator.state
    for _ in range(3):
        with_fixed(instance, values, rng)
    assert sent == ["fixed_inputs", *calls]
    assert (rng.bit_generator.state == state) == (not calls)


#: Text of a file and the words that say what is wrong with it.
MALFORMED = [
    ("", "defines no Model"),
    ("this is no Python", "not Python: line 1"),
    (b"\xff\xfe\x00", "not UTF-8"),
    ("x = 1\0", "null bytes"),
    ("x = " + "-" * 200_000 + "1", "not Python"),
    (GOOD.replace("get_inputs", "get_input"), "defines no get_inputs"),
    (GOOD.replace("class Model", "class ModelNew"), "an answer, not a problem"),
    ("import torch_npu\n\ndef reference(x):\n    return x\n", "another form, NPUKernelBench's"),
    (at_import("raise ValueError('first line\\nsecond line')"), "ValueError: first line"),
    (at_import("import os; os._exit(0)"), "ended its process (status 0)"),
    (at_import("import a_library_that_nobody_has"), "imports a_library_that_nobody_has, which is not installed"),
    (at_import("raise KeyboardInterrupt"), "KeyboardInterrupt"),
    (at_import("import sys; sys.exit(7)"), "exit(7)"),
    (at_import("import os; os.abort()"), "SIGABRT"),
    (at_import("import ctypes; ctypes.string_at(0)"), "SIGSEGV"),
    (GOOD.replace("return [torch.randn(rows, columns)]", "return None"), "get_inputs() fails"),
    (GOOD.replace("return torch.relu(x)", "return torch.relu(x) @ x"), "forward() fails"),
    (GOOD.replace("return torch.relu(x)", "return torch.complex(x, x)"), "complex64 are not supported"),
    (GOOD.replace("(self, x)", "(self, x, y)"), "forward() fails"),
    (GOOD.replace("nn.Module", "object"), "Model cannot be built"),
    (GOOD.replace("return []", "return [1]"), "Model cannot be built"),
    (in_forward("return self(x)"), "RecursionError"),
    (in_forward("x = x if x.sum() > 0 else -x"), "forward() needs the values of a tensor at line"),
    (in_forward("return torch.dropout(x, 0.5, True)"), "forward() draws random numbers"),
]


@pytest.mark.parametrize(("text", "reason"), MALFORMED)
def test_malformed_files_are_one_clear_line(tmp_path, text, reason):
    assert reason in fails(tmp_path, text)


def test_an_endless_loop_is_answered_in_time(tmp_path, monkeypatch):
    assert confined_instance.LOAD_SECONDS < 60
    monkeypatch.setattr(confined_instance, "LOAD_SECONDS", 3.0)
    assert "took longer than 3 s" in fails(tmp_path, at_import("while True: pass"))


def test_a_memory_bomb_hits_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(python_process, "MEMORY_BYTES", 4 << 30)
    bomb = at_import("blocks = []\nwhile True: blocks.append(bytearray(1 << 28))")
    assert "memory" in fails(tmp_path, bomb).lower()
    tensors = at_import("import torch\nblocks = []\nwhile True: blocks.append(torch.ones(1 << 27))")
    assert "memory" in fails(tmp_path, tensors).lower()


@pytest.mark.parametrize(
    "attack",
    [
        "open({outside!r} + '/read').read()",
        "import socket; socket.socket()",
        "import os; os.fork()",
        "open('/etc/passwd').read()",
        "open('/proc/self/environ').read()",
        "open({outside!r} + '/written', 'w').write('x')",
        "import os; os.listdir(os.path.expanduser('~root'))",
        "import os; os.remove({outside!r} + '/read')",
        "import socket; socket.socketpair()",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import os; os.kill({parent}, 9)",
        "import os; os.kill(os.getppid(), 9)",
        "import os; open('/proc/{parent}/environ').read()",
        "import os; open(f'/proc/{{os.getppid()}}/mem', 'rb').read(1)",
        "import os; os.environ['SECRET_OF_THE_PARENT']",
    ],
)
def test_a_file_reaches_nothing_outside(tmp_path, monkeypatch, attack):
    """Each attack raises an exception inside, which is the line here; unconfined, each of them would succeed."""
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "read").write_text("secret")
    line = fails(tmp_path, at_import(attack.format(outside=str(outside), parent=os.getpid())))
    assert any(word in line for word in ("PermissionError", "FileNotFoundError", "KeyError", "BlockingIOError"))
    assert (outside / "read").read_text() == "secret"
    assert not (outside / "written").exists()


def test_bytes_in_the_pipe_are_no_message(tmp_path):
    """A file that writes into every descriptor it finds breaks its own process only."""
    noise = "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 64)\n    except OSError: pass"
    with pytest.raises(ProblemFileDied):
        load(tmp_path, at_import(noise))
    assert load(tmp_path, GOOD).cases


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1,) * 33, "more than 32 dimensions"),
        ((1,) * 100_000, "more than 32 dimensions"),
        ((0, 1 << 70), "extents"),
        ((0, 1 << 62, 1 << 62), "extents"),
        ((1 << 32, 1 << 31), "extents"),
        ((1 << 40,), "more tensors"),
        ((-1, 0), "unknown form"),
    ],
)
def test_a_tensor_that_no_array_can_hold_is_no_message(shape, words):
    frame = json.dumps(["", [{"shape": shape, "dtype": "float32"}]]).encode()
    with pytest.raises(messages.BrokenMessage, match=words):
        messages.receive(io.BytesIO(struct.pack("<Q", len(frame)) + frame), 1 << 20)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ([{"shape": (0,), "dtype": "float32"}] * 10_001, "at most 10000 items"),
        ([1] * 300_000, "should be an object"),
    ],
)
def test_a_message_of_too_many_tensors_is_not_read_further(tensors, words):
    frame = json.dumps(["", tensors]).encode()
    with pytest.raises(messages.BrokenMessage, match=words):
        messages.receive(io.BytesIO(struct.pack("<Q", len(frame)) + frame), 1 << 20)


@pytest.mark.parametrize("shape", [(), (0,), (0, 1 << 62), (1,) * 32, (2, 3)])
def test_tensors_of_other_shapes_are_messages(shape):
    stream = io.BytesIO()
    messages.send(stream, "text", [torch.ones(shape)])
    stream.seek(0)
    text, tensors = messages.receive(stream, 1 << 20)
    assert (text, [tuple(tensor.shape) for tensor in tensors]) == ("text", [shape])


@pytest.mark.parametrize(
    ("inputs", "ints", "words"),
    [
        ({"shape": (4,), "dtype": "float128"}, (), "float128"),
        ({"shape": (-4,)}, (), "dimensions"),
        ({"shape": (1,) * 9}, (), "9 dimensions"),
        ({"shape": (1 << 40,)}, (), "MB"),
        ({"shape": (4,), "dtype": "int64", "domain": Domain("index", limit=0)}, (), "range"),
        ({"shape": (4,), "dtype": "int8", "domain": Domain("index", limit=129)}, (), "range"),
        ({"shape": (4,), "dtype": "uint8", "domain": Domain("index", limit=9, low=-1)}, (), "range"),
        ({"shape": (4,), "dtype": "int64", "domain": Domain("index", limit=1 << 62)}, (), "range"),
        ({"shape": (4,), "dtype": "int64", "domain": Domain("index", limit=1 << 40, distinct=True)}, (), "too wide"),
        ({"shape": (), "dtype": "int64", "domain": Domain("index", limit=4, distinct=True)}, (), "too wide"),
        ({"shape": (0, 1 << 62)}, (), "extents"),
        ({"shape": (4,)}, (1 << 70,), "64 bits"),
    ],
)
def test_a_signature_that_no_kernel_can_have_is_refused(monkeypatch, inputs, ints, words):
    """A file shares its process with the code that answers for it, so that it may say anything of itself."""
    signature = Signature((InputSpec(**inputs),), (TensorSpec((4,)),), ints=ints)
    answer = (Response(signature=signature, work=10**400), [])
    monkeypatch.setattr(confined_instance.ConfinedInstance, "_call", lambda *_, **__: answer)
    case = Case("public", "public")
    with pytest.raises(TaskError, match=words):
        confined_instance.ConfinedInstance("", "", case, case)


#: Changes the responses of its own process: `{}` is what it does with a response, of which `s` is the signature.
HOSTILE = """
import dataclasses
from dataclasses import replace as r
from kernel_gym.tasks import messages
from kernel_gym.tasks.specs import Domain, InputSpec, TensorSpec
if not hasattr(messages, "true_send"):
    messages.true_send = messages.send_response
    def hostile(stream, response, tensors=()):
        s = response.signature
        if s or {1}:
            response = r(response, {0})
        messages.true_send(stream, response, tensors)
    messages.send_response = hostile
"""
#: What a response is changed to, and the words that say what is wrong with it; None if nothing is.
LIES = [
    ("signature=r(s, inputs=(*s.inputs, InputSpec((0, 2**70), 'float32', 'y')))", "extents that no memory has"),
    ("signature=r(s, outputs=(*s.outputs, TensorSpec((0, 2**70))))", "extents that no memory has"),
    ("signature=r(s, inputs=(r(s.inputs[0], domain=Domain('index', 2**100)),))", "indices without a range"),
    ("signature=r(s, inputs=(r(s.inputs[0], domain=Domain('index', 2**61)),))", None),
    ("signature=r(s, inputs=(r(s.inputs[0], domain=Domain('real', 0, -5)),))", "number of factors"),
    ("signature=r(s, inputs=(r(s.inputs[0], domain=Domain('real', 0, 10**400)),))", "number of factors"),
    ("signature=r(s, inputs=(r(s.inputs[0], dtype='int32', domain=Domain('index', 3, 0, 0, True)),))", "other tensors"),
    ("signature=r(s, inputs=(r(s.inputs[0], name='\\x1b[2J\\n' + 'x' * 1000),))", "name that cannot be printed"),
    ("signature=r(s, inputs=(*s.inputs, *(InputSpec((0,), 'float32', 'y'),) * 200000))", ""),
    ("signature=r(s, structure='x' * 10000000, calls=-5)", "name that cannot be printed"),
    ("signature=r(s, calls=10**300)", "64 bits"),
    ("signature=r(s, draws=('\\x1b[2J' * 100,), changes=('a',))", None),
    ("signature=r(s, floats=(float('inf'), float('nan')))", None),
    ("signature=r(s, outputs=(r(s.outputs[0], dtype='float64'),))", None),
    ("error='\\x1b[31mHELLO\\n\\x1b]0;t\\x07' + 'y' * 100000", "[31mHELLO ]0;t yyy"),
    ("drawn=[0]", "draws tensors that it does not have"),
    ("drawn=[10**400]", "draws tensors that it does not have"),
]


@pytest.mark.parametrize(("change", "words"), LIES)
def test_a_file_that_lies_about_itself_is_one_clear_line(tmp_path, change, words):
    def judge() -> Task:
        task = load(tmp_path, HOSTILE.format(change, change.startswith(("error", "drawn"))) + GOOD)
        for case, kind in ((task.public, "normal"), (task.public, "structured"), (task.timing, "mixed")):
            References(secret=b"a secret").draw(task, case, kind, "timed", Kernel("int kernel;"))
        return task

    if words is None:
        assert all(flag.isprintable() for flag in judge().flags)
        return
    with pytest.raises(TaskError) as caught:
        judge()
    line = str(caught.value)
    assert words in line
    assert line.isprintable()
    assert len(line) < 400


def test_what_a_file_writes_before_it_ends_is_one_line_that_can_be_printed(tmp_path):
    dies = "import os\nos.write(2, b'\\x1b[31mHELLO\\x07' + b'y' * 1000)\nos._exit(3)"
    assert fails(tmp_path, at_import(dies)).isprintable()


def test_negative_numbers_are_indices_of_a_confined_file(tmp_path):
    task = load(tmp_path, GOOD.replace("torch.randn(rows, columns)", "torch.randint(-3, 5, (rows, columns))"))
    assert task.instance(task.public).signature.inputs[0].domain == Domain("index", 5, low=-3)


@pytest.mark.parametrize("output", [torch.zeros(3), torch.zeros(4, dtype=torch.bool)])
def test_outputs_of_another_shape_or_kind_of_element_are_refused(monkeypatch, output):
    signature = Signature((InputSpec((4,)),), (TensorSpec((4,)),))
    monkeypatch.setattr(
        confined_instance.ConfinedInstance,
        "_call",
        lambda _, method, *__, **___: (Response(signature=signature), [output] if method == "evaluate" else []),
    )
    case = Case("public", "public")
    instance = confined_instance.ConfinedInstance("", "", case, case)
    with pytest.raises(TaskError, match="other tensors than before"):
        instance.evaluate((torch.zeros(4),))


def test_an_amount_of_work_that_no_kernel_has_is_limited(monkeypatch):
    answer = (Response(signature=Signature((), ()), work=10**400), [])
    monkeypatch.setattr(confined_instance.ConfinedInstance, "_call", lambda *_, **__: answer)
    assert confined_instance.ConfinedInstance("", "", None, Case("public", "public")).work() == 1 << 62


@pytest.mark.parametrize(
    "counts",
    [
        Counts(products=[1 << 62]),
        Counts(products=[10**400]),
        Counts(products=[-1]),
        Counts(additions=[-1]),
        Counts(softmaxes=[()]),
        Counts(softmaxes=[(2, -2)]),
        Counts(softmaxes=[(1 << 31, 1 << 31)]),
        Counts(softmaxes=[(0, 1 << 70)]),
        Counts(softmaxes=[(1,) * 9]),
        Counts(constant_activations=-1),
        Counts(constant_activations=10**400),
    ],
)
def test_counts_that_no_module_has_are_refused(monkeypatch, counts):
    answer = (Response(signature=Signature((), ()), counts=counts), [])
    monkeypatch.setattr(confined_instance.ConfinedInstance, "_call", lambda *_, **__: answer)
    instance = confined_instance.ConfinedInstance("", "", None, Case("public", "public"))
    with pytest.raises(TaskError, match="impossible counts"):
        instance.tried((), Trial())


def test_a_process_that_dies_is_started_again(tmp_path):
    task = load(tmp_path, GOOD)
    instance = task.instance(task.public)
    values = [torch.randn(spec.shape) for spec in instance.signature.inputs]
    (first,) = instance.evaluate(values)
    for process in confined_instance._processes(os.getpid())._processes.values():
        process._process.kill()
        process._process.wait()
    (second,) = instance.evaluate(values)
    assert torch.equal(first, second)


def fork_server() -> ForkServer:
    return python_process._fork_servers[os.getpid()]


forked = pytest.mark.skipif(programs().confinement.bubblewrap is not None, reason="bubblewrap starts each process")


@forked
def test_files_have_a_process_each_and_one_server(tmp_path):
    """The server is ready to fork, which a process with threads is not."""
    load(tmp_path, GOOD)
    server = fork_server()
    load(tmp_path, at_import("another = 1"))
    assert fork_server() is server
    pids = {process._process.pid for process in confined_instance._processes(os.getpid())._processes.values()}
    assert server.pid not in pids
    assert len(pids) >= 2
    assert len(os.listdir(f"/proc/{server.pid}/task")) == 1


@forked
def test_nothing_of_one_file_reaches_another(tmp_path):
    """What a file changes in its process, the next one does not see."""
    changes = "import builtins, os, torch\nbuiltins.left = os.environ['LEFT'] = 'x'\nopen('left', 'w').write('x')\n"
    load(tmp_path, at_import(changes + "torch.relu = torch.sigmoid\nimport torch.nn as nn\nnn.Module.left = True"))
    look = "import builtins, os, torch\nimport torch.nn as nn\n"
    look += "seen = [hasattr(builtins, 'left'), 'LEFT' in os.environ, os.listdir('.'), hasattr(nn.Module, 'left')]\n"
    look += "raise ValueError(seen + [torch.relu(torch.tensor(-1.0)).item()])"
    assert "ValueError: [False, False, [], False, 0.0]" in fails(tmp_path, at_import(look))


@forked
def test_a_file_has_the_descriptors_of_its_streams_and_pipes_alone(tmp_path):
    look = "import os\ndef is_open(fd):\n    try: return bool(os.fstat(fd))\n    except OSError: return False\n"
    look += "raise ValueError(sum(map(is_open, range(256))))"
    assert "ValueError: 5" in fails(tmp_path, at_import(look))


@forked
def test_a_file_has_a_folder_and_threads_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    look = "import os, tempfile, torch\nhome = os.path.expanduser('~')\n"
    look += "open(tempfile.NamedTemporaryFile(delete=False).name, 'w').write('x')\n"
    look += "raise ValueError([home == os.getcwd() == tempfile.gettempdir(), torch.get_num_threads()])"
    assert "ValueError: [True, 3]" in fails(tmp_path, at_import(look))


@forked
@pytest.mark.slow
def test_a_server_that_dies_is_started_again(tmp_path):
    task = load(tmp_path, GOOD)
    instance = task.instance(task.public)
    values = [torch.randn(spec.shape) for spec in instance.signature.inputs]
    (first,) = instance.evaluate(values)
    server = fork_server()
    running = [p for p in confined_instance._processes(os.getpid())._processes.values() if p.alive]
    os.kill(server.pid, signal.SIGKILL)
    for process in running:
        assert process._process.wait(10) == -signal.SIGKILL, "a process ends with its server"
    (second,) = instance.evaluate(values)
    assert torch.equal(first, second)
    assert fork_server() is not server


@forked
def test_a_process_that_cannot_be_confined_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(python_process._Start, "_words", lambda self, tools: ["--bad", "x"])
    with pytest.raises(InfrastructureError, match="did not start: confine: unknown option"):
        load(tmp_path, at_import("new_to_all_processes = 1"))


@forked
def test_a_module_that_cannot_be_imported_is_named():
    with pytest.raises(InfrastructureError, match="did not start: ModuleNotFoundError: No module named 'no_module'"):
        python_process.PythonProcess("no_module", "problem file", 1)


@pytest.mark.slow
def test_packages_that_are_links_are_readable(tmp_path, monkeypatch):
    """As in a virtual environment that shares the packages of another one."""
    packages, elsewhere = tmp_path / "site-packages", tmp_path / "elsewhere"
    (elsewhere / "linked").mkdir(parents=True)
    (elsewhere / "linked" / "__init__.py").write_text("number = 4711")
    packages.mkdir()
    (packages / "linked").symlink_to(elsewhere / "linked")
    (packages / "again").symlink_to(packages)
    (packages / "broken").symlink_to(elsewhere / "nothing")
    assert python_process.linked_from(packages) == [str(elsewhere / "linked")]
    python_process._readable.cache_clear()
    try:
        with monkeypatch.context() as patched:
            patched.syspath_prepend(str(packages))
            look = f"import sys\nsys.path.append({str(packages)!r})\nimport linked\nraise ValueError(linked.number)"
            assert "ValueError: 4711" in fails(tmp_path, at_import(look))
    finally:
        python_process._readable.cache_clear()


@pytest.mark.slow
def test_a_process_starts_without_a_server(tmp_path, monkeypatch):
    """As where bubblewrap takes the place of Landlock."""
    monkeypatch.setattr(python_process._Start, "_fork", python_process._Start._execute)
    assert load(tmp_path, GOOD).confined
    assert "PermissionError" in fails(tmp_path, at_import("open('/etc/passwd').read()"))


@pytest.mark.slow
def test_no_process_outlives_its_owner(tmp_path):
    """The confined processes, and their server, end with the process that asked for them."""
    import subprocess
    import sys

    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    code = (
        "import os, sys; from kernel_gym.suites import find_task; from kernel_gym.tasks import confined_instance as c;"
        f"t = find_task({str(path)!r}); t.instance(t.public);"
        "print([p._process.pid for p in c._processes(os.getpid())._processes.values()], flush=True);"
        "from kernel_gym.confinement import python_process as p;"
        "print([server.pid for server in p._fork_servers.values()], flush=True); os._exit(0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pids = [pid for line in run.stdout.splitlines() for pid in json.loads(line)]
    assert pids
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_the_option_and_the_variable_trust_a_file(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(at_import(f"open({str(tmp_path / 'written')!r}, 'w').write('x')"))
    monkeypatch.setenv("KERNEL_GYM_TRUST", "1")
    assert not find_task(str(path)).confined
    assert (tmp_path / "written").exists()


class FakeProcess:
    """A process that is busy or not, and notes that it was ended."""

    def __init__(self, is_busy=False):
        self.is_busy, self.alive, self.ended = is_busy, True, False

    def close(self):
        self.ended = True


def test_a_process_that_somebody_waits_for_is_not_ended_for_another_file(monkeypatch):
    processes = confined_instance._Processes()
    busy = FakeProcess(is_busy=True)
    made = iter([busy, *(FakeProcess() for _ in range(confined_instance.MOST_PROCESSES + 1))])
    monkeypatch.setattr(confined_instance, "_ConfinedProcess", lambda source: next(made))
    kept = [processes.get(str(number)) for number in range(confined_instance.MOST_PROCESSES + 2)]
    assert [process.ended for process in kept[:4]] == [False, True, True, False]


def test_infinities_in_a_graph_are_sent_as_they_are() -> None:
    graph = Graph((), (Call("full", "aten.full.default", [[2], float("-inf")], {"value": float("inf")}),), (), ())
    stream = io.BytesIO()
    messages.send_response(stream, Response(graph=graph))
    stream.seek(0)
    assert messages.receive_response(stream, 0)[0].graph == graph
