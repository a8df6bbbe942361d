"""Verdicts: closed, honest, readable back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.verdict import GATES, Cheated, Feasible, Incorrect, Profile, Uncompilable, Unjudged, Verdict, from_json

text = st.text(max_size=40)
verdicts: st.SearchStrategy[Verdict] = st.one_of(
    st.builds(Cheated, feedback=text, gate=st.sampled_from(GATES), rule=text),
    st.builds(Uncompilable, feedback=text, line=st.none() | st.integers(1, 999)),
    st.builds(Incorrect, feedback=text, cause=st.sampled_from(["fault", "timeout", "refused", "mismatch"])),
    st.builds(
        Feasible,
        feedback=text,
        latency=st.floats(0.01, 1e6),
        profile=st.builds(Profile, pipes=st.dictionaries(text, st.floats(0, 1e3), max_size=3), bottleneck=text),
    ),
    st.builds(Unjudged, feedback=text),
)


@given(verdicts)
def test_round_trip(verdict: Verdict) -> None:
    import json

    assert from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


@given(verdicts)
def test_a_latency_needs_feasibility(verdict: Verdict) -> None:
    assert (verdict.latency_us is not None) == verdict.feasible
    assert verdict.feasible == (verdict.compiled is True and verdict.correct is True and not verdict.hack)
    if verdict.correct is not None:
        assert verdict.compiled is True


@pytest.mark.parametrize("latency", [0.0, -1.0, float("nan")])
def test_feasible_without_a_latency_cannot_be_made(latency: float) -> None:
    with pytest.raises(ValueError, match="latency"):
        Feasible(feedback="", latency=latency)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(TypeError):
        from_json(Uncompilable(feedback="").to_json() | {"latency": 3.0})
