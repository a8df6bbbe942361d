"""Verify a kernel from Python: compile it, check its values, time it, and see what its time goes into."""

from kernel_gym import Feasible, Kernel, Verifier, find_task
from kernel_gym.authors.apprentice import oracle
from kernel_gym.experiments.runs.reference_latency import floor_us
from kernel_gym.hardware.ascend_sim.device import AscendSim

task = find_task("basics/vector_add")
source = oracle(task).source  # or the text of a file of your own
with Verifier(AscendSim()) as verifier:
    verdict = verifier.verify(Kernel(source), task)
    floor = floor_us(task, verifier.device)
    wrong = verifier.verify(Kernel(source.replace("AscendC::Add(", "AscendC::Sub(")), task)

assert isinstance(verdict, Feasible)
print(f"{verdict.outcome}: {verdict.latency:.1f} us, {verdict.latency / floor:.1f} x the floor ({floor:.1f} us)")
print(f"limited by {verdict.profile.bottleneck}: {verdict.profile.diagnosis}")
print(f"{wrong.outcome}: {wrong.feedback}")
