"""Attacks on the sandbox: a plain process succeeds with most of them, a confined one with none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kernel_gym.confinement import programs as confinement_programs
from kernel_gym.confinement import sandbox
from kernel_gym.confinement.sandbox import LANDLOCK, LIMITS, SECCOMP
from kernel_gym.hardware.ascend_sim import runtime as runtimes
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

NOBODY = 65534


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs where any user can start them."""
    folder = tmp_path_factory.mktemp("programs")
    for program in (confinement_programs.programs().probes, confinement_programs.programs().confine):
        shutil.copy(program, folder)
    for parent in (folder, *folder.parents):
        if parent.owner() == folder.owner() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    return folder


def available(programs: Path) -> int:
    answer = subprocess.run(
        [programs / "sandbox-probes", "--layers"], capture_output=True, text=True, check=True
    ).stdout
    return int(json.loads(answer)["layers"])


def attack(programs: Path, layers: int, user: int | None = None) -> tuple[int, set[str]]:
    """How many attacks were tried, and which succeeded."""
    command = [programs / "sandbox-probes", "--all", str(layers)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, user=user, cwd="/")
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    return answer["tried"], set(answer["reached"])


USERS = [
    pytest.param(None, id="as I am"),
    pytest.param(NOBODY, id="as nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs root")),
]


@pytest.mark.parametrize("user", USERS)
def test_no_attack_succeeds_with_all_layers(programs: Path, user: int | None) -> None:
    layers = LIMITS | LANDLOCK | SECCOMP
    if layers & ~available(programs):
        pytest.skip("this kernel lacks Landlock or seccomp")
    tried, reached = attack(programs, layers, user)
    assert tried >= 40
    assert reached == set()


@pytest.mark.parametrize("user", USERS)
def test_a_plain_process_succeeds_with_most(programs: Path, user: int | None) -> None:
    tried, reached = attack(programs, 0, user)
    assert len(reached) > 0.6 * tried, "the attacks work, so their failure means something"


def test_without_landlock_only_files_leak_and_only_while_loading(programs: Path) -> None:
    if not available(programs) & SECCOMP:
        pytest.skip("this kernel lacks seccomp")
    _, reached = attack(programs, LIMITS | SECCOMP)
    assert reached <= {"loading: read /etc/passwd", "loading: create a file in /tmp", "loading: list a folder"}


def test_each_layer_stops_something(programs: Path) -> None:
    plain = attack(programs, 0)[1]
    limited = attack(programs, LIMITS)[1]
    assert limited < plain
    for layer in (LANDLOCK, SECCOMP):
        if available(programs) & layer:
            assert attack(programs, LIMITS | layer)[1] < limited


def test_the_tier_matches_its_layers() -> None:
    tier = sandbox.confinement(confinement_programs.programs().probes)
    assert tier.tier in "ABCD"
    assert (tier.tier == "A") == (tier.layers == LIMITS | LANDLOCK | SECCOMP)
    assert bool(tier.reached) == (tier.tier == "D")
    assert sandbox.confinement(confinement_programs.programs().probes) is tier, "probed once in a process"


def confined(programs: Path, folder: Path, script: str, *read: str) -> subprocess.CompletedProcess[str]:
    reads = [
        word for path in ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", *read) for word in ("--read", path)
    ]
    command = [programs / "confine", "--write", folder, *reads, "--", "/bin/bash", "-c", script]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={"PATH": "/usr/bin:/bin"}
    )


def test_a_confined_compiler_writes_its_own_folder_only(programs: Path, tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    assert confined(programs, own, "echo x > file && cat file").stdout == "x\n"
    run = confined(programs, own, f"echo x > {other}/file")
    if available(programs) & LANDLOCK:
        assert run.returncode != 0
        assert not (other / "file").exists()


def test_a_confined_compiler_reads_what_is_named_only(programs: Path, tmp_path: Path) -> None:
    if not available(programs) & LANDLOCK:
        pytest.skip("this kernel lacks Landlock")
    own, secret = tmp_path / "own", tmp_path / "secret"
    own.mkdir()
    secret.write_text("hidden")
    assert "hidden" not in confined(programs, own, f"cat {secret}").stdout
    assert confined(programs, own, f"cat {secret}", str(secret)).stdout == "hidden"


def test_a_confined_compiler_has_limits_and_no_network(programs: Path, tmp_path: Path) -> None:
    limits = confined(programs, tmp_path, "ulimit -t; ulimit -v; ulimit -f; ulimit -c").stdout.split()
    assert [int(limit) for limit in limits] == [20, 4 << 20, 64 << 10, 0]
    if available(programs) & SECCOMP:
        run = confined(programs, tmp_path, "exec 3<>/dev/tcp/127.0.0.1/9")
        assert "not permitted" in run.stderr


SIGNALS = {
    "tgkill": "syscall(SYS_tgkill, getppid(), getppid(), 0)",
    "rt_sigqueueinfo": "syscall(SYS_rt_sigqueueinfo, getppid(), 0, &info)",
    "rt_tgsigqueueinfo": "syscall(SYS_rt_tgsigqueueinfo, getppid(), getppid(), 0, &info)",
}


def test_one_process_signals_itself_alone(programs: Path, tmp_path: Path) -> None:
    """Without Landlock, which the kernels before 6.12 need for this, the system calls are refused."""
    if not available(programs) & SECCOMP:
        pytest.skip("this kernel lacks seccomp")
    calls = "".join(f'printf("{name} %d ", (int){call});' for name, call in SIGNALS.items())
    headers = "".join(f"#include <{name}.h>\n" for name in ("signal", "stdio", "sys/syscall", "unistd"))
    body = f"siginfo_t info = {{.si_code = SI_QUEUE}}; {calls} fflush(stdout); return raise(SIGABRT);"
    (tmp_path / "signals.c").write_text(f"#define _GNU_SOURCE\n{headers}int main(void) {{ {body} }}\n")
    subprocess.run(["gcc", "-o", tmp_path / "signals", tmp_path / "signals.c"], check=True)
    plain = subprocess.run([tmp_path / "signals"], capture_output=True, text=True, check=False)
    assert (plain.stdout.split()[1::2], plain.returncode) == (["0"] * 3, -signal.SIGABRT)
    layers = ("--layers", str(LIMITS | SECCOMP), "--processes", "one")
    command = [programs / "confine", "--write", tmp_path, *layers, "--", tmp_path / "signals"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout.split()[1::2], run.returncode) == (["-1"] * 3, -signal.SIGABRT)


#: What one process could tell another by: calls that a plain process makes with success.
SHARED_STATE = {
    "flock": "flock(file, LOCK_SH)",
    "F_SETLK": "fcntl(file, F_SETLK, &lock)",
    "F_GETLK": "fcntl(file, F_GETLK, &lock)",
    "F_OFD_SETLK": "fcntl(file, F_OFD_SETLK, &lock)",
    "F_GETLEASE": "fcntl(file, F_GETLEASE) < 0",
    "prlimit of another": "prlimit(getppid(), RLIMIT_NOFILE, 0, &limit)",
    "affinity of another": "sched_getaffinity(getppid(), sizeof set, &set)",
    "scheduler of another": "sched_getscheduler(getppid())",
    "priority of all": "(errno = 0, getpriority(PRIO_USER, 0), errno)",
    "ioprio": "syscall(SYS_ioprio_get, 1, getppid()) < 0",
    "session of another": "getsid(getppid()) < 0",
    "times of a file": "futimens(file, times)",
    "mode of a file": "fchmod(file, 0600)",
    "owner of a file": "fchown(file, -1, -1)",
    "inotify": "inotify_init1(0) < 0",
    "pages in memory": "mincore(page, 1, &resident)",
    "pages to memory": "posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)",
    "user": "setresuid(-1, -1, -1)",
}
#: What an interpreter needs of the same calls.
OWN_STATE = {
    "F_GETFL": "fcntl(file, F_GETFL) < 0",
    "prlimit": "prlimit(0, RLIMIT_NOFILE, 0, &limit)",
    "prlimit by number": "prlimit(getpid(), RLIMIT_NOFILE, 0, &limit)",
    "affinity": "sched_getaffinity(0, sizeof set, &set)",
}
#: What a program that reads and writes files does not need.
OTHER = {
    "pipe": "pipe(ends)",
    "statfs": 'statfs("/", &disk)',
    "sysinfo": "sysinfo(&machine)",
    "affinity": "sched_getaffinity(0, sizeof set, &set)",
    "remove": 'unlink("file")',
}


def calls_of_a_program(programs: Path, folder: Path, calls: dict[str, str], processes: str | None) -> set[str]:
    """The calls that succeed in a program, confined if `processes` says how."""
    system = ("file", "inotify", "mman", "resource", "stat", "statfs", "syscall", "sysinfo")
    names = ("errno", "fcntl", "sched", "stdio", "unistd", *(f"sys/{name}" for name in system))
    headers = "".join(f"#include <{name}.h>\n" for name in names)
    values = (
        'int file = open("file", O_RDWR | O_CREAT, 0600), ends[2]; struct flock lock = {.l_type = F_WRLCK};'
        "struct rlimit limit; struct timespec times[2] = {}; struct statfs disk; struct sysinfo machine; cpu_set_t set;"
        "unsigned char resident; static char page[4096] __attribute__((aligned(4096))); (void)page;"
    )
    tried = "".join(f'if (({call}) == 0) puts("{name}");' for name, call in calls.items())
    (folder / "calls.c").write_text(f"#define _GNU_SOURCE\n{headers}int main(void) {{ {values} {tried} return 0; }}\n")
    subprocess.run(["gcc", "-w", "-o", folder / "calls", folder / "calls.c"], check=True)
    command = [folder / "calls"]
    if processes is not None:
        layers = ("--layers", str(LIMITS | SECCOMP), "--processes", processes)
        command = [programs / "confine", "--write", folder, *layers, "--", *command]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return set(run.stdout.splitlines())


@pytest.mark.parametrize("processes", ["one", "alone"])
def test_one_process_shares_no_state_with_others(programs: Path, tmp_path: Path, processes: str) -> None:
    if not available(programs) & SECCOMP:
        pytest.skip("this kernel lacks seccomp")
    assert calls_of_a_program(programs, tmp_path, SHARED_STATE, None) == set(SHARED_STATE)
    assert calls_of_a_program(programs, tmp_path, SHARED_STATE, processes) == set()


def test_one_process_sees_its_own_state(programs: Path, tmp_path: Path) -> None:
    assert calls_of_a_program(programs, tmp_path, OWN_STATE, "one") == set(OWN_STATE)


def test_a_program_that_is_alone_reads_and_writes_files_only(programs: Path, tmp_path: Path) -> None:
    if not available(programs) & SECCOMP:
        pytest.skip("this kernel lacks seccomp")
    assert calls_of_a_program(programs, tmp_path, OTHER, "one") == set(OTHER)
    assert calls_of_a_program(programs, tmp_path, OTHER, "alone") == set()


def test_confine_reports_wrong_arguments(programs: Path, tmp_path: Path) -> None:
    bad = subprocess.run(
        [programs / "confine", "--bad", "x", "--", "/bin/true"], capture_output=True, text=True, check=False
    )
    assert (bad.returncode, bad.stderr) == (125, "confine: unknown option\n")
    command = [programs / "confine", "--write", tmp_path, "--", "/no/such/compiler"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 125


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
def test_bubblewrap_replaces_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    tiers = [tier for tier in sandbox._tiers() if tier[0].tier == "B"]
    monkeypatch.setattr(sandbox, "_tiers", lambda: tiers)
    sandbox.confinement.cache_clear()
    try:
        with AscendSim() as device:
            assert device.sandbox_tier() == "B"
            source = (runtimes.HERE / "examples" / "relu.asc").read_text()
            secret = device.build(Kernel('#include "/etc/passwd"\n' + source))
            assert "No such file" in secret.diagnostics[0].message
            build = device.build(Kernel(source))
            assert build.ok, build.diagnostics
            signature = Signature((InputSpec((1000,)),), (TensorSpec((1000,)),))
            values = np.linspace(-1, 1, 1000, dtype=np.float32)
            assert np.array_equal(device.run(build, Inputs(signature, (values,))).outputs[0], np.maximum(values, 0))
    finally:
        sandbox.confinement.cache_clear()
