"""Gates on channels and positions of images, some with several branches."""

from __future__ import annotations

from kernel_gym.suites.attention.channel_gates import IMAGE, SMALL
from kernel_gym.suites.attention.family import linear, pointwise
from kernel_gym.suites.definitions import CaseSizes

#: A convolution with its normalisation.
CONV3 = "nn.Sequential(nn.Conv2d({0}, {0}, 3, padding={1}, dilation={1}), nn.BatchNorm2d({0}), nn.ReLU())"
#: The largest and the mean channel.
ZPOOL = "torch.stack([{0}.amax(dim=1), {0}.mean(dim=1)], dim=1)"

DEFINITIONS = (
    IMAGE.module(
        31,
        "cbam_block",
        "A gate on channels from their means and maxima, then one on positions from a convolution of both.",
        "Woo et al., CBAM, 2018, arXiv:1807.06521; the window of 49 is that of the published set",
        f"""
mean, largest = x.mean(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
gates = [self.excite(torch.relu(self.squeeze(y))) for y in (mean, largest)]
x = x * torch.sigmoid(gates[0] + gates[1])
return x * torch.sigmoid(self.spatial({ZPOOL.format("x")}))""",
        {
            "squeeze": pointwise("channels", "channels // reduction", bias=False),
            "excite": pointwise("channels // reduction", "channels", bias=False),
            "spatial": "nn.Conv2d(2, 1, kernel_size, padding=kernel_size // 2)",
        },
        arguments="[512, 16, 49]",
        reduction=16,
        kernel_size=49,
    ),
    IMAGE.module(
        32,
        "bam",
        "One gate from the channels' means plus dilated convolutions of the positions, added to the input.",
        "Park et al., BAM: Bottleneck Attention Module, 2018, arXiv:1807.06514",
        """
channel = self.channel(x.mean(dim=(2, 3)))[:, :, None, None]
return x * (1 + torch.sigmoid(channel + self.spatial(x)))""",
        {
            "channel": "nn.Sequential(nn.Linear(channels, channels // reduction), "
            "nn.BatchNorm1d(channels // reduction), nn.ReLU(), nn.Linear(channels // reduction, channels))",
            "spatial": "nn.Sequential(nn.Conv2d(channels, channels // reduction, 1), "
            "nn.BatchNorm2d(channels // reduction), nn.ReLU(), "
            + ", ".join([CONV3.format("channels // reduction", 4)] * 2)
            + ", nn.Conv2d(channels // reduction, 1, 1))",
        },
        arguments="[512]",
        reduction=16,
    ),
    IMAGE.module(
        33,
        "triplet_attention",
        "The mean of three gated copies: on height and width, on channels and width, on height and channels.",
        "Misra et al., Rotate to Attend: Triplet Attention, 2021, arXiv:2010.03045",
        f"""
plain = x * torch.sigmoid(self.plain({ZPOOL.format("x")}))
y = x.transpose(1, 2)
rows = (y * torch.sigmoid(self.rows({ZPOOL.format("y")}))).transpose(1, 2)
y = x.transpose(1, 3)
columns = (y * torch.sigmoid(self.columns({ZPOOL.format("y")}))).transpose(1, 3)
return (plain + rows + columns) / 3""",
        dict.fromkeys(
            ("plain", "rows", "columns"),
            "nn.Sequential(nn.Conv2d(2, 1, kernel_size, padding=kernel_size // 2, bias=False), nn.BatchNorm2d(1))",
        ),
        init="",
        arguments="[7]",
        kernel_size=7,
    ),
    IMAGE.module(
        34,
        "sk_attention",
        "Convolutions with four window sizes, mixed by a softmax over the branches for each channel.",
        "Li et al., Selective Kernel Networks, 2019, arXiv:1903.06586",
        """
branches = torch.stack([self.conv1(x), self.conv3(x), self.conv5(x), self.conv7(x)], dim=1)
z = self.squeeze(branches.sum(dim=1).mean(dim=(2, 3)))
gates = torch.stack([self.gate1(z), self.gate3(z), self.gate5(z), self.gate7(z)], dim=1)
return (branches * torch.softmax(gates, dim=1)[..., None, None]).sum(dim=1)""",
        {
            **{
                f"conv{k}": f"nn.Sequential(nn.Conv2d(channels, channels, {k}, padding={k // 2}), "
                "nn.BatchNorm2d(channels), nn.ReLU())"
                for k in (1, 3, 5, 7)
            },
            "squeeze": linear("channels", "max(least, channels // reduction)"),
            **{f"gate{k}": linear("max(least, channels // reduction)", "channels") for k in (1, 3, 5, 7)},
        },
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 16, 7, 9),
            hidden=((1, 24, 5, 7), (2, 8, 8, 3), (5, 12, 4, 4)),
            timing=(4, 128, 7, 7),
        ),
        arguments="[512, [1, 3, 5, 7], 16, 1, 32]",
        reduction=16,
        least=32,
    ),
    IMAGE.module(
        35,
        "shuffle_attention",
        "Half of each group of channels gated by channel, half by position; then the halves are interleaved.",
        "Zhang and Yang, SA-Net: Shuffle Attention, 2021, arXiv:2102.00240",
        """
y = x.unflatten(1, (self.groups, 2, -1)).flatten(0, 1)
left, right = y[:, 0], y[:, 1]
left = left * torch.sigmoid(left.mean(dim=(2, 3), keepdim=True) * self.channel_weight + self.channel_bias)
right = right * torch.sigmoid(self.norm(right) * self.spatial_weight + self.spatial_bias)
y = torch.stack([left, right], dim=1).unflatten(0, (-1, self.groups)).flatten(1, 3)
return y.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)""",
        {
            **dict.fromkeys(
                ("channel_weight", "channel_bias", "spatial_weight", "spatial_bias"),
                "nn.Parameter(torch.randn(1, channels // (2 * groups), 1, 1))",
            ),
            "norm": "nn.InstanceNorm2d(channels // (2 * groups), affine=True)",
        },
        arguments="[512, 16, 8]",
        groups=8,
    ),
    IMAGE.module(
        36,
        "psa",
        "Quarters of the channels convolved with windows of 3 to 9 and mixed by a softmax over their gates.",
        "Zhang et al., EPSANet: Pyramid Squeeze Attention, 2021, arXiv:2105.14447",
        """
parts = x.unflatten(1, (4, -1)).unbind(1)
convs = (self.conv3, self.conv5, self.conv7, self.conv9)
parts = torch.stack([conv(part) for conv, part in zip(convs, parts, strict=True)], dim=1)
squeezes = (self.squeeze3, self.squeeze5, self.squeeze7, self.squeeze9)
gates = [gate(part.mean(dim=(2, 3))) for gate, part in zip(squeezes, parts.unbind(1), strict=True)]
gates = torch.softmax(torch.stack(gates, dim=1), dim=1)
return (parts * gates[..., None, None]).flatten(1, 2)""",
        {
            **{
                f"conv{k}": f"nn.Conv2d(channels // 4, channels // 4, {k}, padding={k // 2}, groups={groups})"
                for k, groups in ((3, 1), (5, 4), (7, 8), (9, 16))
            },
            **{
                f"squeeze{k}": "nn.Sequential(nn.Linear(channels // 4, channels // (4 * reduction)), nn.ReLU(), "
                "nn.Linear(channels // (4 * reduction), channels // 4), nn.Sigmoid())"
                for k in (3, 5, 7, 9)
            },
        },
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 128, 7, 9),
            hidden=((1, 192, 5, 7), (2, 256, 8, 3), (5, 128, 4, 5)),
            timing=(8, 512, 7, 7),
        ),
        arguments="[512, 4, 4]",
        reduction=4,
    ),
    IMAGE.module(
        37,
        "parnet_attention",
        "The sum of a pointwise and a 3 x 3 convolution and of the input gated by its means, through SiLU.",
        "Goyal et al., Non-deep Networks, 2021, arXiv:2110.07641",
        """
gate = torch.sigmoid(self.gate(x.mean(dim=(2, 3), keepdim=True)))
return F.silu(self.norm1(self.conv1(x)) + self.norm3(self.conv3(x)) + x * gate)""",
        {
            "gate": pointwise("channels", "channels"),
            "conv1": pointwise("channels", "channels"),
            "norm1": "nn.BatchNorm2d(channels)",
            "conv3": "nn.Conv2d(channels, channels, 3, padding=1)",
            "norm3": "nn.BatchNorm2d(channels)",
        },
        sizes=SMALL,
        arguments="[512]",
    ),
    IMAGE.module(
        38,
        "residual_attention",
        "Scores of classes: the mean of a pointwise classifier over the positions, plus a share of its maximum.",
        "Zhu and Wu, Residual Attention: A Simple but Effective Method, 2021, arXiv:2108.02456",
        """
y = self.classify(x).flatten(2)
return y.mean(dim=2) + self.share * y.amax(dim=2)""",
        {"classify": pointwise("channels", "classes", bias=False)},
        sizes=CaseSizes(
            "batch channels height width classes",
            public=(3, 64, 7, 9, 20),
            hidden=((1, 32, 5, 7, 33), (2, 96, 8, 3, 10), (5, 48, 4, 4, 17)),
            timing=(32, 512, 7, 7, 1000),
        ),
        init="channels classes",
        arguments="[512, 1000, 0.2]",
        share=0.2,
    ),
)
