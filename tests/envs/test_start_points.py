"""Which kernels can be refined: those that the device at hand judged; and what agents are told of them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernel_gym.envs.factories import device_name, judge_name
from kernel_gym.envs.known_optimum import ArithmeticJudge
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Child
from kernel_gym.errors import ConfigError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Verdict
from tests.envs.test_attempts import K, attempt


def kernel_from(device: str, latency: float) -> MemoryItem:
    """A feasible kernel of the first task, judged on a device."""
    verdict, code = Feasible("ok", device=device, latency=latency), f"// {device}"
    return MemoryItem(Kind.TRACE, "k", code, code, verdict, "some/task-0", "math", language="text")


def test_only_kernels_judged_on_the_current_device_are_start_points(make: Any, stand_ins: Any) -> None:
    """A latency of one device is no bound on another."""
    for here, best in (("slow", 9.0), ("fast", 1.0), ("", 1.0)):
        bank = stand_ins.bank()
        bank.add([kernel_from("fast", 1.0), kernel_from("slow", 9.0)])
        judge = stand_ins.Profiling()
        judge.device_name = here
        _, info = make(bank=bank, verifier=judge).reset(seed=0)
        assert (info["stage"], info["best_us"], info["first_us"]) == (Stage.REFINE, best, best)
        assert [c.item.verdict.device for c in info["candidates"]] == ([here] if here else ["fast", "slow"])
        judge.device_name = "third"
        env = make(bank=bank, verifier=judge)
        assert env.reset(seed=0)[1]["stage"] is Stage.DRAFT
        with pytest.raises(ConfigError, match="for some/task-0 on third; it has none"):
            make(bank=bank, verifier=judge, stages="refine").reset(seed=0)


def test_children_judged_on_another_device_are_not_listed(make: Any, stand_ins: Any) -> None:
    bank, author = stand_ins.bank(), stand_ins.Listed("1 2 3")
    (start,) = bank.add([kernel_from("here", 5.0)])
    bank.add([replace(kernel_from("there", 1.0), parent=start)])
    judge = stand_ins.Profiling()
    judge.device_name = "here"
    env = make(bank=bank, author=author, verifier=judge)
    env.reset(seed=0)
    env.step(np.int64(0))
    assert env._episode.request().start.children == ()


class Judge(ArithmeticJudge):
    """Judges on a device, in the end; `doubts` verdicts before that are against the kernel."""

    def __init__(self, device: str, doubts: int = 0) -> None:
        self.device_name, self.doubts = device, doubts

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        self.doubts -= 1
        verdict = Incorrect("not in time", cause="timeout") if self.doubts >= 0 else super().verify(kernel, task)
        return replace(verdict, device=self.device_name)


def test_a_memory_can_be_used_on_another_device(make: Any, stand_ins: Any) -> None:
    """The same kernel, written on both: each device has a trace of its own to refine."""
    bank, traces = stand_ins.bank(), {}
    for device in ("one", "other", "one"):
        env = make(bank=bank, author=stand_ins.Listed("latency 8.0"), verifier=Judge(device))
        observation, info = env.reset(seed=None)
        assert info["stage"] is (Stage.REFINE if device in traces else Stage.DRAFT)
        while "attempt" not in info or not info["start_due"]:
            observation, _, _, _, info = env.step(np.argmax(observation["action_mask"]))
        assert [candidate.item.verdict.device for candidate in info["candidates"]] == [device]
        assert info["attempt"].produced[0] == traces.setdefault(device, info["candidates"][0].id)
    assert traces["one"] != traces["other"]
    assert bank.problems() == ()


def test_kernels_of_another_chip_or_policy_do_not_count(make: Any, stand_ins: Any) -> None:
    """Their latencies cannot be compared: the same kernel would be paid for a difference that it did not make."""
    bank = stand_ins.bank()
    for options in ({"device_options": {"chip": "910B4"}}, {}, {"policy": "reference"}):
        for stage, reward in ((Stage.DRAFT, 1.0), (Stage.REFINE, 0.0)):
            env = make(bank=bank, author=stand_ins.Listed("latency 8.0"), verifier=Judge("sim"), **options)
            observation, info = env.reset(seed=None)
            assert info["stage"] is stage
            while "attempt" not in info:
                observation, paid, _, _, info = env.step(np.argmax(observation["action_mask"]))
            assert paid == reward
    assert bank.problems() == ()
    traces = [item.verdict.device for item in bank.items() if item.kind is Kind.TRACE and item.verdict is not None]
    assert traces == ["sim (chip=910B4)", "sim", "sim (reference)"]


def test_latencies_at_other_sizes_are_those_of_another_judge() -> None:
    options = [Options(verifier=Judge("sim"), sizes=sizes) for sizes in ("timing", "held-out")]
    assert [judge_name(each) for each in options] == ["sim", "sim (held-out sizes)"]


def test_a_trace_that_names_the_device_alone_counts_for_its_policy(make: Any, stand_ins: Any) -> None:
    trace = kernel_from("sim", 1.0)
    assert trace.verdict is not None
    bank = stand_ins.bank()
    bank.add([replace(trace, verdict=replace(trace.verdict, policy="reference"))])
    stages = {
        policy: make(bank=bank, verifier=Judge("sim"), policy=policy).reset(seed=None)[1]["stage"]
        for policy in ("strict", "reference")
    }
    assert stages == {"strict": Stage.DRAFT, "reference": Stage.REFINE}


def test_options_that_a_service_would_not_use_are_refused() -> None:
    with pytest.raises(ConfigError, match="device_options are those of the service"):
        Options.of({"service": "http://127.0.0.1:1", "device_options": {"chip": "910B4"}})
    for where in ("service", "cluster"):
        with pytest.raises(ConfigError, match="inspection reads kernels that are judged here"):
            Options.of({"inspection": {"model": "one"}, where: "127.0.0.1:1"})


def test_refining_begins_only_where_there_is_something_to_refine(make: Any, stand_ins: Any) -> None:
    """A bank that has the kernel with another, earlier verdict keeps that verdict; the draft is rewarded once."""
    texts = ("latency 8.0", "latency 8.0", "latency 8.0", "latency 9.0")
    env = make(author=stand_ins.Listed(*texts), verifier=Judge("here", doubts=1))
    env.reset(seed=0)
    stages, rewards = [], []
    for _ in texts:
        observation, reward, _, _, info = attempt(env, K)
        assert observation["action_mask"].any()
        stages.append((info["attempt"].verdict.feasible, info["stage"], info["start_due"]))
        rewards.append(reward)
    drafting = (True, Stage.DRAFT, False)
    assert stages == [(False, Stage.DRAFT, False), drafting, drafting, (True, Stage.REFINE, True)]
    assert rewards[:3] == [-1.0, 1.0, 0.0]
    assert rewards[3] < 0


def test_the_first_kernel_is_the_oldest_in_the_bank(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed(*[f"latency {100.0 - i}" for i in range(K + 3)]), budget=K + 3)
    _, info = env.reset(seed=0)
    for _ in range(K + 3):
        *_, info = attempt(env, *[0] * info["start_due"], K)
    assert (info["first_us"], info["best_us"]) == (100.0, 86.0)
    _, again = env.reset(options={"task": info["task"]})
    assert (again["first_us"], again["best_us"]) == (100.0, 86.0)


def test_the_device_name_comes_from_the_verifier() -> None:
    assert device_name(Options()) == device_name(Options(verifier=SimpleNamespace(device=AscendSim()))) == "ascend-sim"
    assert device_name(Options(verifier=SimpleNamespace(device_name="recorded"))) == "recorded"
    assert device_name(Options(verifier=SimpleNamespace())) == ""


def test_an_agent_sees_the_results_of_refining_each_start_point(make: Any, stand_ins: Any) -> None:
    """The agent needs `info` alone, not the bank."""
    bank = stand_ins.bank()
    slow, fast = bank.add([kernel_from("", 5.0), kernel_from("sim", 2.0)])
    env = make(bank=bank, author=stand_ins.Listed("latency 4", "wrong", "latency 4"), verifier=stand_ins.Profiling())
    _, info = env.reset(seed=0)
    assert [(one.id, one.children) for one in info["candidates"]] == [(fast, ()), (slow, ())]
    kernels = []
    for _ in range(3):
        *_, info = attempt(env, [one.id for one in info["candidates"]].index(slow), K)
        kernels.append(info["attempt"])
    children = {one.id: one.children for one in info["candidates"]}
    first, wrong, again = kernels
    assert again.produced[0] == first.produced[0], "one kernel is one child"
    assert children[slow] == tuple(
        Child(one.produced[0], one.verdict.outcome, one.verdict.latency_us) for one in (first, wrong)
    )
    assert children[fast] == ()
    *_, info = attempt(env, 0)
    assert not any(one.children for one in info["candidates"]), "only start points have them"
