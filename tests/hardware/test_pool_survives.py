"""Kernels that no screen has seen, at a pool of real devices: the others are served, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from kernel_gym.confinement.programs import programs
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.hardware.worker_pool import WorkerPool
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

FILE = """#include "kernel_operator.h"
#include "kernel_gym.h"
extern "C" {
int fork(); int open(const char *, int, ...); long write(int, const void *, unsigned long); int kill(int, int);
int raise(int); int getppid();
void *malloc(unsigned long); void *signal(int, void *); int setpgid(int, int); void _exit(int);
int pthread_create(void *, const void *, void *(*)(void *), void *); int pause();
int execve(const char *, char **, char **);
}
void *idle(void *) { for (;;) {} }
__global__ __aicore__ void fill(GM_ADDR y) {
    AscendC::GlobalTensor<float> out;
    out.SetGlobalBuffer((__gm__ float *)y, 8);
    for (uint32_t i = 0; i < 8; ++i) out.SetValue(i, 1.0f);
    AscendC::DataCacheCleanAndInvalid<float, AscendC::CacheLine::ENTIRE_DATA_CACHE>(out);
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    @attack@
    fill<<<1, nullptr, stream>>>((GM_ADDR)a->outputs[0].ptr);
    return 0;
}
"""
HONEST = ""
ATTACKS = {
    "fork bomb": "for (;;) fork();",
    "memory bomb": "while (char *p = (char *)malloc(1 << 26)) p[0] = 1; return 1;",
    "disk filling": 'char b[4096]; int f = open("/tmp/kernel_gym_filled", 65, 384); while (write(f, b, 4096) > 0) {}',
    "signal to the parent": "kill(getppid(), 9);",
    "signal to everybody": "kill(-1, 9);",
    "stopping itself": "raise(19);",
    "ignoring signals": "signal(15, (void *)1); for (;;) {}",
    "waiting": "pause();",
    "leaving its group": "setpgid(0, 0); for (;;) {}",
    "another program": 'execve("/bin/true", nullptr, nullptr);',
    "threads": "long t; for (;;) pthread_create(&t, nullptr, idle, nullptr);",
    "leaving": "_exit(0);",
    "bad pointer": "*(volatile int *)8 = 1;",
    "stack": "struct S { static int f(int n) { volatile char b[1 << 16]; b[n] = 1; return f(n) + b[n]; } }; S::f(3);",
}
SIGNATURE = Signature((InputSpec((8,)),), (TensorSpec((8,)),))


def judge(device: AscendSim, attack: str) -> Run:
    build = device.build(Kernel(FILE.replace("@attack@", attack)))
    assert build.ok, build.diagnostics
    return device.run(build, Inputs(SIGNATURE, (np.zeros(8, np.float32),)))


def children() -> set[str]:
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.mark.slow
def test_the_pool_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if programs().confinement.tier not in ("A", "B"):
        pytest.skip("attacks succeed on this machine's sandbox")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, filled = children(), os.path.exists("/tmp/kernel_gym_filled")
    pool: WorkerPool[str, Run] = WorkerPool(AscendSim(timeout=20.0, budget=2_000_000), judge, workers=2)
    requests = [text for attack in ATTACKS.values() for text in (attack, HONEST)]
    results = pool.map(requests)
    pool.close()
    for name, (attacked, honest) in zip(ATTACKS, zip(results[::2], results[1::2], strict=True), strict=True):
        assert isinstance(attacked, Run), (name, attacked)
        assert attacked.status != "ok", name
        assert isinstance(honest, Run), (name, honest)
        assert honest.status == "ok", (name, honest.fault)
        assert (honest.outputs[0] == 1).all()
    assert children() <= before
    assert list(tmp_path.iterdir()) == []
    assert filled or not os.path.exists("/tmp/kernel_gym_filled")
