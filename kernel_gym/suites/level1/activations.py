"""Activations: element by element, and along a row."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

MATRIX = CaseSizes("rows columns", public=(32, 256), hidden=((1, 1009), (37, 61), (5, 4099)), timing=(4096, 2048))
ROWS = CaseSizes("rows columns", public=(32, 256), hidden=((3, 1009), (67, 61), (129, 8)), timing=(8192, 1024))


def _activation(
    number: int, name: str, description: str, forward: str, sizes: CaseSizes = MATRIX, **settings: object
) -> TaskDefinition:
    return TaskDefinition(
        number,
        name,
        "activation",
        description,
        sizes,
        forward,
        inputs={"x": "torch.randn(rows, columns)"},
        settings=settings,
        init=" ".join(settings),
    )


DEFINITIONS = (
    _activation(19, "relu", "Rectified linear unit.", "torch.relu(x)"),
    _activation(
        20, "leaky_relu", "ReLU with a slope below zero.", "F.leaky_relu(x, self.negative_slope)", negative_slope=0.01
    ),
    _activation(21, "sigmoid", "Logistic function.", "torch.sigmoid(x)"),
    _activation(22, "tanh", "Hyperbolic tangent.", "torch.tanh(x)"),
    _activation(23, "softmax", "Softmax of each row.", "torch.softmax(x, dim=1)", ROWS),
    _activation(
        24, "log_softmax", "Logarithm of the softmax of each row.", "torch.log_softmax(x, dim=self.dim)", ROWS, dim=1
    ),
    _activation(25, "swish", "x times its logistic function.", "x * torch.sigmoid(x)"),
    _activation(26, "gelu", "Gaussian error linear unit, exact.", "F.gelu(x)"),
    _activation(27, "selu", "Scaled exponential linear unit.", "torch.selu(x)"),
    _activation(28, "hardsigmoid", "Logistic function in three straight pieces.", "F.hardsigmoid(x)"),
    _activation(29, "softplus", "Smooth ReLU: log(1 + exp(x)).", "F.softplus(x)"),
    _activation(30, "softsign", "x / (1 + |x|).", "x / (1 + torch.abs(x))"),
    _activation(31, "elu", "Exponential linear unit.", "F.elu(x, alpha=self.alpha)", alpha=1.0),
    _activation(32, "hardtanh", "Clamp to [-1, 1].", "F.hardtanh(x, min_val=-1.0, max_val=1.0)"),
    _activation(
        88,
        "min_gpt_new_gelu",
        "GELU by its tanh approximation, written out.",
        "0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))",
    ),
)
