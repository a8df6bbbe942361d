"""Gates on the channels of images."""

from __future__ import annotations

from kernel_gym.suites.attention.family import Family, linear, pointwise
from kernel_gym.suites.definitions import CaseSizes

IMAGE = Family(
    sizes=CaseSizes(
        "batch channels height width",
        public=(3, 64, 7, 9),
        hidden=((1, 32, 5, 7), (2, 96, 8, 3), (5, 160, 4, 4)),
        timing=(64, 512, 7, 7),
    ),
    inputs={"x": "torch.randn(batch, channels, height, width)"},
    init="channels",
    published="x float32[128, 512, 7, 7]",
)
#: Sizes for modules with a convolution over all channels.
SMALL = CaseSizes(
    "batch channels height width",
    public=(3, 64, 7, 9),
    hidden=((1, 32, 5, 7), (2, 96, 8, 3), (5, 48, 4, 4)),
    timing=(8, 256, 7, 7),
)
#: A parameter with one number for each channel.
PER_CHANNEL = "nn.Parameter(torch.randn(1, channels, 1, 1))"

DEFINITIONS = (
    IMAGE.module(
        21,
        "se_attention",
        "Channels scaled by gates that two linear layers compute from the channels' means.",
        "Hu et al., Squeeze-and-Excitation Networks, 2018, arXiv:1709.01507",
        """
gate = torch.relu(self.squeeze(x.mean(dim=(2, 3))))
return x * torch.sigmoid(self.excite(gate))[:, :, None, None]""",
        {
            "squeeze": linear("channels", "channels // reduction", bias=False),
            "excite": linear("channels // reduction", "channels", bias=False),
        },
        arguments="[512, 16]",
        reduction=16,
    ),
    IMAGE.module(
        22,
        "eca_attention",
        "Channels scaled by gates from a convolution along the channels' means.",
        "Wang et al., ECA-Net, 2020, arXiv:1910.03151; five weights for 128 to 2047 channels",
        "x * torch.sigmoid(self.conv(x.mean(dim=(2, 3)).unsqueeze(1)).squeeze(1))[:, :, None, None]",
        {"conv": "nn.Conv1d(1, 1, kernel_size, padding=kernel_size // 2, bias=False)"},
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 128, 7, 9),
            hidden=((1, 136, 5, 7), (2, 160, 8, 3), (5, 130, 4, 4)),
            timing=(64, 512, 7, 7),
        ),
        init="",
        arguments="[512, 2, 1]",
        kernel_size=5,
    ),
    IMAGE.module(
        23,
        "gct",
        "Channels scaled by a Gaussian of their normalised means.",
        "Ruan et al., Gaussian Context Transformer, 2021, CVPR",
        """
y = x.mean(dim=(2, 3), keepdim=True)
centre = y.mean(dim=1, keepdim=True)
variance = y.square().mean(dim=1, keepdim=True) - centre.square()
y = (y - centre) / torch.sqrt(variance + self.epsilon)
return x * torch.exp(-0.5 * self.sharpness * y.square())""",
        init="",
        arguments="[512, 2, 1e-05]",
        sharpness=2.0,
        epsilon=1e-5,
    ),
    IMAGE.module(
        24,
        "srm",
        "Channels recalibrated by their style: a weighted sum of mean and deviation, normalised, through a sigmoid.",
        "Lee et al., SRM: A Style-based Recalibration Module, 2019, arXiv:1903.10829",
        """
flat = x.flatten(2)
style = torch.stack([flat.mean(dim=2), flat.std(dim=2)], dim=-1)
gate = torch.sigmoid(self.norm(self.integrate(style)))
return x * gate.unsqueeze(-1)""",
        {
            "integrate": "nn.Conv1d(channels, channels, 2, groups=channels, bias=False)",
            "norm": "nn.BatchNorm1d(channels)",
        },
        arguments="[512]",
    ),
    IMAGE.module(
        25,
        "gated_channel_transform",
        "Channels scaled by 1 + tanh of their norms, which are normalised across channels.",
        "Yang et al., Gated Channel Transformation, 2020, arXiv:1909.11519",
        """
y = torch.sqrt(x.square().sum(dim=(2, 3), keepdim=True) + self.epsilon) * self.alpha
scale = self.gamma / torch.sqrt(y.square().mean(dim=1, keepdim=True) + self.epsilon)
return x * (1 + torch.tanh(y * scale + self.beta))""",
        {"alpha": PER_CHANNEL, "gamma": PER_CHANNEL, "beta": PER_CHANNEL},
        arguments="[512, 1e-05, 'l2']",
        epsilon=1e-5,
    ),
    IMAGE.module(
        26,
        "gc_module",
        "A global context, the mean of the positions weighted by softmax, transformed and added to every position.",
        "Cao et al., GCNet, 2019, arXiv:1904.11492",
        """
weight = torch.softmax(self.mask(x).flatten(2), dim=-1)
context = x.flatten(2) @ weight.transpose(1, 2)
y = torch.relu(self.norm(self.squeeze(context.unsqueeze(-1))))
return x + self.excite(y)""",
        {
            "mask": pointwise("channels", "1"),
            "squeeze": pointwise("channels", "channels // reduction"),
            "norm": "nn.LayerNorm([channels // reduction, 1, 1])",
            "excite": pointwise("channels // reduction", "channels"),
        },
        arguments="[512, 16]",
        reduction=16,
    ),
    IMAGE.module(
        27,
        "lct",
        "Channels scaled by gates that are linear in their means, which are normalised within groups of channels.",
        "Ruan et al., Linear Context Transform Block, 2020, arXiv:1909.03834",
        """
y = x.mean(dim=(2, 3)).unflatten(1, (self.groups, -1))
centre = y.mean(dim=2, keepdim=True)
variance = y.square().mean(dim=2, keepdim=True) - centre.square()
y = ((y - centre) / torch.sqrt(variance + self.epsilon)).flatten(1)
return x * torch.sigmoid(self.weight * y + self.bias)[:, :, None, None]""",
        {"weight": "nn.Parameter(torch.randn(channels))", "bias": "nn.Parameter(torch.randn(channels))"},
        sizes=CaseSizes(
            "batch channels height width",
            public=(3, 96, 7, 9),
            hidden=((1, 64, 5, 7), (2, 128, 8, 3), (5, 160, 4, 4)),
            timing=(64, 512, 7, 7),
        ),
        arguments="[512, 32, 1e-05]",
        groups=32,
        epsilon=1e-5,
    ),
    IMAGE.module(
        28,
        "simam",
        "Elements scaled by an energy without parameters: how far they are from their channel's mean.",
        "Yang et al., SimAM, 2021, ICML",
        """
distance = (x - x.mean(dim=(2, 3), keepdim=True)).square()
energy = distance / (4 * (x.var(dim=(2, 3), keepdim=True) + self.balance)) + 0.5
return x * torch.sigmoid(energy)""",
        init="",
        arguments="[0.0001]",
        balance=1e-4,
    ),
    IMAGE.module(
        29,
        "coord_att",
        "Elements scaled by two gates, one for their row and one for their column.",
        "Hou et al., Coordinate Attention, 2021, arXiv:2103.02907",
        """
rows, columns = x.mean(dim=3), x.mean(dim=2)
y = F.hardswish(self.norm(self.squeeze(torch.cat([rows, columns], dim=2).unsqueeze(-1)))).squeeze(-1)
rows, columns = torch.split(y, [x.shape[2], x.shape[3]], dim=2)
return x * torch.sigmoid(self.row(rows.unsqueeze(-1))) * torch.sigmoid(self.column(columns.unsqueeze(2)))""",
        {
            "squeeze": pointwise("channels", "max(8, channels // reduction)"),
            "norm": "nn.BatchNorm2d(max(8, channels // reduction))",
            "row": pointwise("max(8, channels // reduction)", "channels"),
            "column": pointwise("max(8, channels // reduction)", "channels"),
        },
        arguments="[512, 512, 32]",
        reduction=32,
    ),
    IMAGE.module(
        30,
        "spatial_group_enhance",
        "Groups of channels scaled by the normalised similarity of every position to the group's mean.",
        "Li et al., Spatial Group-wise Enhance, 2019, arXiv:1905.09646",
        """
y = x.unflatten(1, (self.groups, -1))
similar = (y * y.mean(dim=(3, 4), keepdim=True)).sum(dim=2).flatten(2)
similar = similar - similar.mean(dim=2, keepdim=True)
similar = similar / (similar.std(dim=2, keepdim=True) + self.epsilon)
gate = torch.sigmoid(similar * self.weight + self.bias).unflatten(2, (x.shape[2], x.shape[3]))
return (y * gate.unsqueeze(2)).flatten(1, 2)""",
        {"weight": "nn.Parameter(torch.randn(1, groups, 1))", "bias": "nn.Parameter(torch.randn(1, groups, 1))"},
        init="",
        arguments="[8]",
        groups=8,
        epsilon=1e-5,
    ),
)
