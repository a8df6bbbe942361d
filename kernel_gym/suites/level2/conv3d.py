"""Chains on a 3-D convolution."""

from __future__ import annotations

from functools import partial

from kernel_gym.suites.definitions import CaseSizes
from kernel_gym.suites.level2.chain import Base, chain, parameter

CONV3D = Base(
    title="3-D convolution",
    layer="conv",
    constructor="nn.Conv3d(in_channels, out_channels, kernel_size)",
    shape="batch, in_channels, depth, height, width",
    sizes=CaseSizes(
        "batch in_channels out_channels depth height width",
        public=(2, 3, 8, 8, 8, 8),
        hidden=((1, 2, 4, 7, 9, 8), (2, 1, 12, 6, 7, 11), (3, 3, 4, 9, 6, 7)),
        timing=(2, 8, 16, 16, 32, 32),
    ),
    arguments="in_channels out_channels",
    settings={"kernel_size": 3},
)
CHANNELS = parameter("out_channels", "1", "1", "1")
GROUP_NORM = {"group_norm": "nn.GroupNorm(num_groups, out_channels)"}
_conv = partial(chain, CONV3D)

DEFINITIONS = (
    _conv(
        6,
        "conv3d_softmax_max_pool_max_pool",
        "torch.softmax(x, dim=1)",
        "F.max_pool3d(x, self.pool_kernel_size)",
        "F.max_pool3d(x, self.pool_kernel_size)",
        pool_kernel_size=2,
    ),
    _conv(
        7,
        "conv3d_relu_leaky_relu_gelu_sigmoid_bias_add",
        "torch.relu(x)",
        "F.leaky_relu(x, negative_slope=0.01)",
        "F.gelu(x)",
        "torch.sigmoid(x)",
        "x + self.bias",
        layers={"bias": CHANNELS},
        redundant="the leaky ReLU follows a ReLU",
    ),
    _conv(
        8,
        "conv3d_divide_max_global_avg_pool_bias_add_sum",
        "x / self.divisor",
        "F.max_pool3d(x, self.pool_size)",
        "F.adaptive_avg_pool3d(x, (1, 1, 1))",
        "x + self.bias",
        "torch.sum(x, dim=self.sum_dim)",
        layers={"bias": CHANNELS},
        divisor=2.0,
        pool_size=(2, 2, 2),
        sum_dim=1,
    ),
    _conv(
        23,
        "conv3d_group_norm_mean",
        "self.group_norm(x)",
        "torch.mean(x, dim=[1, 2, 3, 4])",
        layers=GROUP_NORM,
        num_groups=4,
    ),
    _conv(24, "conv3d_min_softmax", "torch.min(x, dim=self.dim)[0]", "torch.softmax(x, dim=1)", dim=2),
    _conv(
        27,
        "conv3d_hardswish_relu_softmax_mean",
        "F.hardswish(x)",
        "torch.relu(x)",
        "torch.softmax(x, dim=1)",
        "torch.mean(x, dim=[2, 3, 4])",
    ),
    _conv(
        43,
        "conv3d_max_log_sum_exp_relu",
        "F.max_pool3d(x, kernel_size=2, stride=2)",
        "torch.logsumexp(x, dim=1, keepdim=True)",
        "torch.relu(x)",
    ),
    _conv(47, "conv3d_mish_tanh", "F.mish(x)", "torch.tanh(x)"),
    _conv(
        48,
        "conv3d_scaling_tanh_multiply_sigmoid",
        "x * self.scaling_factor",
        "torch.tanh(x)",
        "x * self.bias",
        "torch.sigmoid(x)",
        layers={"scaling_factor": CHANNELS, "bias": CHANNELS},
    ),
    _conv(
        79,
        "conv3d_multiply_instance_norm_clamp_multiply_max",
        "x * self.multiplier",
        "self.instance_norm(x)",
        "torch.clamp(x, self.clamp_min, self.clamp_max)",
        "x * self.multiplier",
        "torch.max(x, dim=1)[0]",
        layers={"multiplier": CHANNELS, "instance_norm": "nn.InstanceNorm3d(out_channels)"},
        clamp_min=-1.0,
        clamp_max=1.0,
    ),
    _conv(
        83,
        "conv3d_group_norm_min_clamp_dropout",
        "self.group_norm(x)",
        "torch.min(x, torch.tensor(self.min_value))",
        "torch.clamp(x, min=self.clamp_min, max=self.clamp_max)",
        "self.dropout(x)",
        layers={**GROUP_NORM, "dropout": "nn.Dropout(dropout_p)"},
        num_groups=4,
        min_value=0.5,
        clamp_min=0.0,
        clamp_max=1.0,
        dropout_p=0.2,
        repaired="the minimum is with 0.5; with 0.0, before a clamp from 0.0, every output was zero",
    ),
    _conv(
        90,
        "conv3d_leaky_relu_sum_clamp_gelu",
        "F.leaky_relu(x, negative_slope=0.2)",
        "x + self.sum_tensor",
        "torch.clamp(x, min=-1.0, max=1.0)",
        "F.gelu(x)",
        layers={"sum_tensor": CHANNELS},
    ),
)
