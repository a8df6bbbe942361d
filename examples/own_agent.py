"""An agent of one's own, compared with one of ours on the same tasks, seeds and budget."""

from kernel_gym import Agent
from kernel_gym.cli.main import main


class Newest(Agent):
    """Shows the author the newest kernels that passed every gate."""

    def act(self, observation, info):
        """Return the slot of the newest feasible candidate, or the action that generates now."""
        legal = observation["action_mask"].nonzero()[0]
        candidates = info["candidates"]
        feasible = [slot for slot in legal if slot < len(candidates) and candidates[slot].item.feasible]
        return int(max(feasible, key=lambda slot: candidates[slot].id) if feasible else legal[-1])


if __name__ == "__main__":
    agents = "similarity,own_agent:Newest"
    tasks = ["--forecast", "--tasks", "relu,softmax,gelu", "--budget", "5", "--seeds", "2"]
    main(["compare", "--agents", agents, *tasks, "--out", "runs/own-agent"])
