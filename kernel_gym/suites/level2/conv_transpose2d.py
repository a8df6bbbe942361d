"""Chains on a 2-D transposed convolution that doubles the image."""

from __future__ import annotations

from functools import partial

from kernel_gym.suites.definitions import CaseSizes
from kernel_gym.suites.level2.chain import Base, chain, parameter

CONV_TRANSPOSE2D = Base(
    title="2-D transposed convolution",
    layer="conv",
    constructor="nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride, padding, output_padding)",
    shape="batch, in_channels, height, width",
    sizes=CaseSizes(
        "batch in_channels out_channels height width",
        public=(2, 4, 8, 7, 7),
        hidden=((1, 3, 4, 5, 6), (3, 5, 12, 4, 7), (2, 1, 4, 9, 3)),
        timing=(8, 64, 32, 32, 32),
    ),
    arguments="in_channels out_channels",
    settings={"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
)
CHANNELS = parameter("out_channels", "1", "1")
GROUP_NORM = {"group_norm": "nn.GroupNorm(num_groups, out_channels)"}
_conv = partial(chain, CONV_TRANSPOSE2D)

DEFINITIONS = (
    _conv(
        2,
        "conv_transpose2d_bias_add_clamp_scaling_clamp_divide",
        "x + self.bias",
        "torch.clamp(x, min=0.0, max=1.0)",
        "x * self.scaling_factor",
        "torch.clamp(x, min=0.0, max=1.0)",
        "x / self.scaling_factor",
        layers={"bias": CHANNELS},
        scaling_factor=2.0,
    ),
    _conv(5, "conv_transpose2d_subtract_tanh", "x - self.bias", "torch.tanh(x)", layers={"bias": CHANNELS}),
    _conv(
        10,
        "conv_transpose2d_max_pool_hardtanh_mean_tanh",
        "F.max_pool2d(x, self.maxpool_kernel_size, self.maxpool_stride)",
        "F.hardtanh(x, self.hardtanh_min, self.hardtanh_max)",
        "torch.mean(x, dim=(2, 3), keepdim=True)",
        "torch.tanh(x)",
        stride=1,
        output_padding=0,
        maxpool_kernel_size=2,
        maxpool_stride=2,
        hardtanh_min=-1.0,
        hardtanh_max=1.0,
    ),
    _conv(
        11,
        "convtranspose2d_batchnorm_tanh_maxpool_groupnorm",
        "self.batch_norm(x)",
        "torch.tanh(x)",
        "F.max_pool2d(x, 2)",
        "self.group_norm(x)",
        layers={"batch_norm": "nn.BatchNorm2d(out_channels)", **GROUP_NORM},
        num_groups=4,
    ),
    _conv(
        16,
        "conv_transpose2d_mish_add_hardtanh_scaling",
        "F.mish(x)",
        "x + self.add_value",
        "F.hardtanh(x, min_val=-1.0, max_val=1.0)",
        "x * self.scale",
        add_value=0.5,
        scale=2.0,
    ),
    _conv(19, "conv_transpose2d_gelu_group_norm", "F.gelu(x)", "self.group_norm(x)", layers=GROUP_NORM, num_groups=4),
    _conv(
        36,
        "conv_transpose2d_min_sum_gelu_add",
        "torch.min(x, dim=1, keepdim=True)[0]",
        "torch.sum(x, dim=2, keepdim=True)",
        "F.gelu(x)",
        "x + self.bias",
        layers={"bias": parameter("1", "1", "1")},
    ),
    _conv(
        42,
        "convtranspose2d_globalavgpool_biasadd_logsumexp_sum_multiply",
        "torch.mean(x, dim=(2, 3), keepdim=True)",
        "x + self.bias",
        "torch.logsumexp(x, dim=1, keepdim=True)",
        "torch.sum(x, dim=(2, 3))",
        "x * 10.0",
        layers={"bias": CHANNELS},
        redundant="the sum is over two dimensions of one",
    ),
    _conv(
        44,
        "conv_transpose2d_multiply_global_avg_pool_global_avg_pool_mean",
        "x * self.multiplier",
        "torch.mean(x, dim=[2, 3], keepdim=True)",
        "torch.mean(x, dim=[2, 3], keepdim=True)",
        "torch.mean(x)",
        multiplier=0.5,
        redundant="the second mean is over two dimensions of one",
    ),
    _conv(
        91,
        "convtranspose2d_softmax_biasadd_scaling_sigmoid",
        "torch.softmax(x, dim=1)",
        "x + self.bias",
        "x * self.scaling_factor",
        "torch.sigmoid(x)",
        layers={"bias": CHANNELS},
        scaling_factor=2.0,
    ),
    _conv(
        93,
        "conv_transpose2d_add_min_gelu_multiply",
        "x + self.add_value",
        "torch.min(x, torch.tensor(0.0))",
        "F.gelu(x)",
        "x * self.multiply_value",
        add_value=0.5,
        multiply_value=2.0,
    ),
)
