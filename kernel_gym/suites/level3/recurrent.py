"""Recurrent networks over sequences of a fixed length."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.suites.level3.network import network

BATCH = CaseSizes("batch", public=(3,), hidden=((5,), (1,)), timing=(32,))
ELMAN = "Elman, Finding Structure in Time, 1990"
LSTM = "Hochreiter and Schmidhuber, Long Short-Term Memory, 1997"
GRU = "Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014, arXiv:1406.1078"
STEPS = """
h, results = h0, []
for step in range(length):
    h = torch.tanh(self.inner(torch.cat([x[step], h], dim=1)))
    results.append(self.outer(h))
return """


def _rnn(number: int, name: str, what: str, result: str) -> TaskDefinition:
    return network(
        number,
        name,
        f"A recurrent layer over six steps, {what}.",
        ELMAN,
        f"{STEPS}{result}",
        {"inner": "nn.Linear(24 + 32, 32)", "outer": "nn.Linear(32, 16)"},
        inputs={"x": "torch.randn(length, batch, 24)", "h0": "torch.randn(batch, 32)"},
        sizes=BATCH,
        published="batch 8, 256 steps of 16384 features, 16384 hidden, 8192 outputs",
        length=6,
    )


def _gated(
    number: int, name: str, kind: str, what: str, forward: str, *, directions: int = 1, head: bool = False
) -> TaskDefinition:
    """Return a network of two gated layers; each step's inputs have 16 features and its state 24."""
    state = f"torch.randn({2 * directions}, batch, 24)"
    inputs = {"x": "torch.randn(batch, length, 16)", "h0": state} | ({"c0": state} if kind == "LSTM" else {})
    layers = {"layers": f"nn.{kind}(16, 24, 2, batch_first=True, bidirectional={directions == 2})"}
    return network(
        number,
        name,
        f"Two {kind} layers over five steps, {what}.",
        LSTM if kind == "LSTM" else GRU,
        forward,
        layers | ({"head": f"nn.Linear({24 * directions}, 10)"} if head else {}),
        inputs=inputs,
        sizes=BATCH,
        published="batch 10, 512 steps of 128 features, 256 hidden, six layers",
        length=5,
    )


DEFINITIONS = (
    _rnn(33, "vanilla_rnn", "its last output", "results[-1]"),
    _rnn(34, "vanilla_rnn_hidden", "its outputs at all steps", "torch.stack(results)"),
    _gated(35, "lstm", "LSTM", "and a linear layer of the last step",
           "self.head(self.layers(x, (h0, c0))[0][:, -1])", head=True),
    _gated(36, "lstm_hn", "LSTM", "their last hidden states", "self.layers(x, (h0, c0))[1][0]"),
    _gated(37, "lstm_cn", "LSTM", "their last cell states", "self.layers(x, (h0, c0))[1][1]"),
    _gated(38, "lstm_bidirectional", "LSTM", "in both directions, and a linear layer of the last step",
           "self.head(self.layers(x, (h0, c0))[0][:, -1])", directions=2, head=True),
    _gated(39, "gru", "GRU", "their outputs", "self.layers(x, h0)[0]"),
    _gated(40, "gru_hidden", "GRU", "their last hidden states", "self.layers(x, h0)[1]"),
    _gated(41, "gru_bidirectional", "GRU", "in both directions, their outputs", "self.layers(x, h0)[0]", directions=2),
    _gated(42, "gru_bidirectional_hidden", "GRU", "in both directions, their last hidden states",
           "self.layers(x, h0)[1]", directions=2),
)  # fmt: skip
