"""Tests of the validation and the renewal of the forecast environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice.forecast.measurements import load, to_json
from kernel_gym.cli.analysis import forecast
from kernel_gym.cli.main import main
from kernel_gym.experiments.analysis import forecast_validity
from kernel_gym.verdict import Uncompilable
from tests.support.forecast_tasks import FIVE


def test_an_agent_works_on_all_tasks_in_lock_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Envs(forecast_validity.ForecastVectorEnv):
        def step(self, actions):  # type: ignore[no-untyped-def]
            result = super().step(actions)
            seen.extend([a.task for a in result[-1].get("attempt", ())])
            return result

    monkeypatch.setattr(forecast_validity, "ForecastVectorEnv", Envs)
    standing = forecast_validity.standing("similarity-feasible", 0, FIVE[:2], 3, None)
    assert seen == [*FIVE[:2]] * 3
    assert (standing.agent, standing.seed, standing.live) == ("similarity-feasible", 0, False)
    assert 0.0 <= standing.solved <= 1.0
    assert standing == forecast_validity.standing("similarity-feasible", 0, FIVE[:2], 3, None)


def test_measured_pieces_are_not_measured_again_and_name_their_devices(tmp_path: Path) -> None:
    measured = load()
    rows = [
        {"piece": "messages", "device": "here"} | to_json(messages=measured.messages),
        {"piece": FIVE[0], "device": "there"} | to_json(points={FIVE[0]: measured.points[FIVE[0]]}),
    ]
    pieces, out = tmp_path / "pieces.jsonl", tmp_path / "relu.json.xz"
    pieces.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SystemExit) as ended:
        main(["forecast", "renew", FIVE[0], "--pieces", str(pieces), "--out", str(out)])
    assert ended.value.code == 0
    whole = load(out)
    assert whole.points == {FIVE[0]: measured.points[FIVE[0]]}
    assert whole.messages == measured.messages
    assert (whole.provenance["device"], whole.provenance["tasks"]) == ("here and there", 1)
    assert len(pieces.read_text().splitlines()) == 2


def test_the_page_can_be_written_of_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = {"task": "a/b", "author": "middle", "stage": "draft", "forecast": "feasible", "live": "feasible"}
    row = {"piece": "kernels 5", "comparisons": [same | {"mistakes": []}], "standings": []}
    (tmp_path / "pieces.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(SystemExit) as ended:
        main(["forecast", "validate", "--table", "--out", str(tmp_path)])
    assert ended.value.code == 0
    assert "1 kernels of 1 tasks" in capsys.readouterr().out
    assert (tmp_path / "forecast.md").read_text().startswith("# Forecast and live verdicts")


def test_shards_make_all_pieces_once() -> None:
    from types import SimpleNamespace

    def pieces(shard: tuple[int, int]) -> list[str]:
        some = SimpleNamespace(attempts=160, agents=("random",), seeds=1, agent_tasks=3, agent_budget=2, shard=shard)
        return forecast._pieces(some)  # type: ignore[arg-type]

    assert sorted(pieces((0, 2)) + pieces((1, 2))) == sorted(pieces((0, 1)))
    assert pieces((0, 1))[:2] == ["kernels 0", "kernels 1"]
    groups = forecast._grouped(pieces((0, 1)), 3)
    assert [len(group) for group in groups] == [3, 1, 1, 1]


def test_pieces_that_are_judged_together_stay_apart() -> None:
    tasks = [suites.find_task(name) for name in FIVE[:2]]
    attempts = {piece: forecast_validity.forecast_attempts(piece, tasks) for piece in (0, 1)}
    asked = []

    def judge(pairs: Any) -> list[Any]:
        asked.append(len(pairs))
        return [Uncompilable(kernel.source[:20]) for kernel, _ in pairs]

    compared = forecast_validity.compare_pieces(attempts, judge)
    assert asked == [sum(map(len, attempts.values()))]
    assert {piece: {c.author for c in some} for piece, some in compared.items()} == {0: {"middle"}, 1: {"strong"}}
    assert [c.task for c in compared[1]] == [a.task for a in attempts[1]]
    assert forecast_validity.compare_pieces({1: attempts[1]}, judge) == {1: compared[1]}
