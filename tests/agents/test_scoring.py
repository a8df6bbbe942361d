"""The network over the set of candidates: slots have no meaning, and candidates see each other."""

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from kernel_gym.agents import scoring
from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes, load_weights, weight_names
from kernel_gym.agents.trained import TrainedAgent
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError

LAYOUT = Layout(6)


def network(layers: int = 1) -> CandidateScorer:
    torch.manual_seed(0)
    return CandidateScorer(ScorerSizes.of(LAYOUT, 16, layers)).eval()


def observation(candidates: torch.Tensor, situation: torch.Tensor) -> dict[str, torch.Tensor]:
    there = (candidates != 0).any(-1).float()
    mask = torch.cat([there, torch.ones(len(there), 1)], -1)
    return {"observations": torch.cat([candidates.flatten(1), situation], -1), "action_mask": mask}


def drawn(slots: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    candidates = torch.rand(2, slots, LAYOUT.candidate_width, generator=generator)
    return candidates, torch.rand(2, LAYOUT.global_width, generator=generator)


@pytest.mark.parametrize("layers", [0, 2])
def test_permuting_the_slots_permutes_the_scores(layers: int) -> None:
    scorer, (candidates, situation) = network(layers), drawn()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    scores, values = scorer(observation(candidates, situation))
    other, same = scorer(observation(candidates[:, order], situation))
    torch.testing.assert_close(other[:, :-1], scores[:, :-1][:, order])
    torch.testing.assert_close(other[:, -1], scores[:, -1])
    torch.testing.assert_close(same, values)


def test_slots_without_candidates_change_nothing() -> None:
    scorer, (candidates, situation) = network(), drawn(4)
    padded = torch.cat([candidates, torch.zeros(2, 2, LAYOUT.candidate_width)], 1)
    scores, values = scorer(observation(candidates, situation))
    other, same = scorer(observation(padded, situation))
    torch.testing.assert_close(other[:, [0, 1, 2, 3, 6]], scores)
    torch.testing.assert_close(same, values)
    assert torch.isfinite(scorer(observation(torch.zeros_like(padded), situation))[0]).all()


def test_a_candidate_is_scored_by_what_else_is_there() -> None:
    candidates, situation = drawn()
    changed = candidates.clone()
    changed[:, 5] = 1.0 - changed[:, 5]
    for layers, sees in ((0, False), (1, True)):
        scores, other = (network(layers)(observation(some, situation))[0] for some in (candidates, changed))
        assert torch.allclose(scores[:, :5], other[:, :5]) is not sees


def test_weights_of_earlier_versions_load(tmp_path: Path) -> None:
    torch.save(
        {
            "sizes": {"slots": 6, "features": LAYOUT.candidate_width, "situation": LAYOUT.global_width, "hidden": 16},
            "weights": network(0).state_dict(),
        },
        tmp_path / "old.pt",
    )
    assert load_weights(str(tmp_path / "old.pt")).sizes == network(0).sizes


def test_packaged_weights_load_by_name_and_say_what_made_them() -> None:
    about = json.loads(resources.files("kernel_gym.agents").joinpath("weights", "about.json").read_text())
    assert sorted([*weight_names(), "context_value_prior"]) == sorted(about)
    for name in weight_names():
        assert about[name]["command"].startswith(("kernel-gym pretrain run ", "kernel-gym pretrain fit "))
        agent = TrainedAgent(weights=name)
        layout = Layout(20)
        seen = {"observations": np.zeros(layout.size, np.float32), "action_mask": np.eye(21, dtype=np.float32)[20]}
        assert agent.act(seen, {}) == 20


def test_the_trained_agent_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no weights 'nothing'"):
        TrainedAgent(weights="nothing")
    scoring.save(network(), tmp_path / "own.pt")
    agent = TrainedAgent(weights=str(tmp_path / "own.pt"))
    old = Layout(6, version=1)
    seen = {"observations": np.zeros(old.size, np.float32), "action_mask": np.ones(7, np.float32)}
    with pytest.raises(ConfigError, match=r"set env\.layout"):
        agent.act(seen, {})
