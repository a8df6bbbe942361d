"""Run or resume one configuration: train an agent, or evaluate it with `learning` off, and write the run folder.

A run is resumed by running it again against its journal (`journal.py`).

All tasks of a batch are worked on in lock-step on one bank, one attempt each per iteration, until each has used its
budget; that is the paper's outer loop. Agents that own their training loop get the same environments and the same
budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import numpy as np

from kernel_gym.agents.contract import Agent
from kernel_gym.config import RunConfig
from kernel_gym.envs.vector import view
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.agent_actions import AgentActions
from kernel_gym.experiments.runs.extension import check_extension, explaining_drift
from kernel_gym.experiments.runs.figures import RunOutcome, outcome
from kernel_gym.experiments.runs.recording_env import finished_attempts
from kernel_gym.experiments.runs.run_environments import RunEnvironments
from kernel_gym.experiments.runs.run_folder import RunFolder, keeps_memory, reporting_disk_errors
from kernel_gym.experiments.runs.run_plan import RunPlan
from kernel_gym.experiments.runs.run_recorder import Progress, RunRecorder, no_progress, original_error


def train(config: RunConfig, folder: RunFolder, progress: Progress = no_progress, keep_bank: bool = True) -> RunOutcome:
    """Run a configuration in a folder, from the beginning or from where it was stopped.

    Args:
        config: The agent, tasks, budget, seed and environment of the run.
        folder: The run folder, opened with the same configuration. A complete run is only read, and one that was
            made with a smaller budget is extended.
        progress: Called after every attempt with the attempts made, the attempts in all and the tasks solved.
        keep_bank: Whether a run on forecasts writes its memory as a bank. One that did not is run again, against its
            journal, when the bank is asked for.

    Returns:
        The run's figures.

    Raises:
        ConfigError: The configuration contradicts itself, names something that does not exist or has a larger budget
            than a run that cannot be extended.
        InfrastructureError: An attempt could not be verified, all retries included.
        KernelGymError: The folder cannot be written, or the journal cannot be replayed.
    """
    plan = RunPlan.of(config, folder)
    check_extension(plan)
    if folder.finished(config):
        result = outcome(config.agent, config, folder.last_round(config, len(plan.task_ids)), plan.task_ids)
        if folder.bank.exists() or not (keep_bank and keeps_memory(config)):
            return result
    if config.env.bank and folder.begun:
        raise KernelGymError(
            f"{folder.path} is a run on a shared bank, which cannot be replayed: its attempts are in the bank; "
            "choose another --out to go on from them"
        )
    with reporting_disk_errors(folder.path), ExitStack() as stack:
        journal = folder.open_journal(synced=not config.env.offline)
        stack.callback(folder.close_journal, journal)
        recorder = stack.enter_context(RunRecorder(plan, journal, progress))
        environments = stack.enter_context(make_environments(plan, recorder))
        agent = environments.agent()
        progress(0, plan.attempts, 0)
        with explaining_drift(config, folder), original_error():
            _spend_budget(agent, environments, recorder)
        folder.agent.mkdir(exist_ok=True)  # dropped by stores that keep no empty folders
        agent.save(folder.agent)
        result = recorder.outcome(config.rounds)
        recorder.write_summary(result)
        if keep_bank:
            environments.save_memory()
        folder.finish(recorder.usage())
    return result


def make_environments(plan: RunPlan, recorder: RunRecorder) -> RunEnvironments:
    """Return the maker of a run's environments, on a device or on forecasts."""
    if not plan.config.env.forecast:
        return RunEnvironments(plan, recorder)
    from kernel_gym.experiments.runs.forecast_environments import ForecastEnvironments  # imports slowly

    return ForecastEnvironments(plan, recorder)


def _spend_budget(agent: Agent, environments: RunEnvironments, recorder: RunRecorder) -> None:
    if not (agent.owns_loop and recorder.plan.config.learning):
        _act_and_learn(agent, environments, recorder)
        return

    def log(metrics: Mapping[str, float], step: int) -> None:
        recorder.write_agent_metrics(metrics, recorder.attempts)
        recorder.save_checkpoint(agent)

    agent.fit(environments, recorder.plan.attempts, log)


def _act_and_learn(agent: Agent, environments: RunEnvironments, recorder: RunRecorder) -> None:
    """Run the training loop of agents that only act and learn."""
    config, envs = recorder.plan.config, environments.vector()
    agent_actions = AgentActions(agent, config.agent)
    observations, infos = envs.reset(seed=config.seed)
    while not recorder.finished:
        actions = []
        for i in range(envs.num_envs):
            observation, info = view(observations, infos, i)
            actions.append(agent_actions.ask(observation, info, config.budget - info["attempts_left"] + 1))
        observations, _, _, _, infos = envs.step(np.asarray(actions))
        attempts = [attempt for _, attempt in finished_attempts(infos, envs.num_envs)]
        if config.learning:
            for number, attempt in enumerate(attempts, recorder.attempts - len(attempts) + 1):
                recorder.write_agent_metrics(agent.learn(attempt), number)
        if attempts:
            recorder.write_agent_values(agent)
            recorder.save_checkpoint(agent)
    agent_actions.warn_of_masked()
