"""Manifold-constrained hyper-connections: 15 modules, each written anew from the papers.

A residual connection becomes `n` streams. Before a layer the streams are summed with the weights `pre`; after it, they
are mixed by the matrix `res` and the layer's result is added to them with the weights `post`.
"""

from __future__ import annotations

from kernel_gym.suites.attention.exact import lines
from kernel_gym.suites.attention.family import Family, linear
from kernel_gym.suites.attention.inference import HALF, WIDE
from kernel_gym.suites.definitions import CaseSizes

MHC = "Xie et al., mHC: Manifold-Constrained Hyper-Connections, 2025, arXiv:2512.24880"
SINKHORN = "Sinkhorn and Knopp, Concerning nonnegative matrices and doubly stochastic matrices, 1967"
#: Rows and columns normalised in turn, in log space.
NORMALISE = """
for _ in range(self.iterations):
    res = res - torch.logsumexp(res, dim=-1, keepdim=True)
    res = res - torch.logsumexp(res, dim=-2, keepdim=True)
res = torch.exp(res)"""
#: The weights `pre`, `post` and `res` from the normalised streams, through one projection each.
PROJECT = """
flat = x.flatten(2)
flat = flat * torch.rsqrt(flat.square().mean(dim=-1, keepdim=True) + self.epsilon)
pre = torch.sigmoid(self.scale[0] * (flat @ self.phi_pre) + self.bias_pre)
post = 2 * torch.sigmoid(self.scale[1] * (flat @ self.phi_post) + self.bias_post)
res = self.scale[2] * (flat @ self.phi_res).unflatten(2, (self.streams, self.streams)) + self.bias_res"""
PROJECTIONS = {
    "phi_pre": "nn.Parameter(torch.randn(streams * width, streams) / math.sqrt(streams * width))",
    "phi_post": "nn.Parameter(torch.randn(streams * width, streams) / math.sqrt(streams * width))",
    "phi_res": "nn.Parameter(torch.randn(streams * width, streams * streams) / math.sqrt(streams * width))",
    "bias_pre": "nn.Parameter(torch.randn(streams))",
    "bias_post": "nn.Parameter(torch.randn(streams))",
    "bias_res": "nn.Parameter(torch.randn(streams, streams))",
    "scale": "nn.Parameter(torch.randn(3))",
}
#: The same with all projections in one product.
FUSED = """
flat = flat * torch.rsqrt(flat.square().mean(dim=-1, keepdim=True) + self.epsilon)
mixes = flat @ self.phi
pre = torch.sigmoid(mixes[:, :, : self.streams] + self.bias_pre)
post = 2 * torch.sigmoid(mixes[:, :, self.streams : 2 * self.streams] + self.bias_post)
res = mixes[:, :, 2 * self.streams :].unflatten(2, (self.streams, self.streams)) + self.bias_res"""
FUSED_LAYERS = {
    "phi": "nn.Parameter(torch.randn(streams * width, streams * (streams + 2)) / math.sqrt(streams * width))",
    "bias_pre": "nn.Parameter(torch.randn(streams))",
    "bias_post": "nn.Parameter(torch.randn(streams))",
    "bias_res": "nn.Parameter(torch.randn(streams, streams))",
}
UPDATE = "res @ x + post.unsqueeze(-1) * y.unsqueeze(2)"
STREAM = Family(
    sizes=CaseSizes(
        "batch tokens streams width",
        public=(3, 10, 4, 24),
        hidden=((1, 17, 3, 13), (2, 7, 6, 40), (5, 3, 2, 33)),
        timing=(8, 128, 4, 256),
    ),
    inputs={"x": "torch.randn(batch, tokens, streams, width)"},
    init="",
    published="x float32[8, 128, 4, 256]",
    category="fuse",
)
#: Sizes for modules that have the number of streams as an argument.
FOUR = CaseSizes(
    "batch tokens width",
    public=(3, 10, 24),
    hidden=((1, 17, 13), (2, 7, 40), (5, 3, 33)),
    timing=(8, 128, 256),
)
FOUR_INPUT = {"x": "torch.randn(batch, tokens, 4, width)"}
PRE, RES = "torch.randn(batch, tokens, streams)", "torch.randn(batch, tokens, streams, streams)"
#: Gates on groups of channels, from the channels' means.
GATES = """
gates = self.gates(torch.relu(self.squeeze(x.mean(dim=(2, 3)))))
pre = torch.sigmoid(gates[:, : self.streams])
post = 2 * torch.sigmoid(gates[:, self.streams : 2 * self.streams])
res = gates[:, 2 * self.streams :].unflatten(1, (self.streams, self.streams)) / self.temperature"""
BLOCK = """
groups = x.unflatten(1, (self.streams, -1))
y = self.layer((groups * pre[:, :, None, None, None]).flatten(1, 2)).unflatten(1, (self.streams, -1))
mixed = (res @ groups.flatten(2)).unflatten(2, groups.shape[2:])
return torch.relu((mixed + y * post[:, :, None, None, None]).flatten(1, 2))"""
GATE_LAYERS = {"squeeze": linear("channels", "hidden"), "gates": linear("hidden", "streams * (streams + 2)")}
IMAGE = CaseSizes(
    "batch channels hidden height width",
    public=(3, 40, 12, 7, 9),
    hidden=((1, 32, 9, 5, 7), (2, 24, 16, 8, 3), (4, 48, 10, 4, 4)),
    timing=(8, 64, 64, 16, 16),
)

DEFINITIONS = (
    STREAM.module(
        1,
        "sinkhorn_knopp",
        "Doubly stochastic matrices from 20 iterations that normalise rows and columns in log space.",
        f"{SINKHORN}; {MHC}",
        lines("res = x", NORMALISE, "return res"),
        sizes=CaseSizes("batch side", public=(3, 8), hidden=((1, 5), (7, 12), (16, 3)), timing=(1024, 8)),
        inputs={"x": "torch.randn(batch, side, side)"},
        published="x float32[16, 8, 8]",
        arguments="[20, 1e-08, 0.0]",
        category="normalization",
        iterations=20,
    ),
    STREAM.module(
        2,
        "mhc_projector",
        "The weights pre, post and res of every token from its normalised streams; res is doubly stochastic.",
        MHC,
        lines(PROJECT, NORMALISE, "return pre, post, res"),
        PROJECTIONS,
        sizes=FOUR,
        inputs=FOUR_INPUT,
        init="width",
        arguments="[4, 256, 20, 0.01, 1e-06]",
        streams=4,
        iterations=20,
        epsilon=1e-6,
    ),
    STREAM.module(
        3,
        "stream_weighted_sum",
        "The sum of the streams with the weights pre.",
        MHC,
        "(x * pre.unsqueeze(-1)).sum(dim=2)",
        inputs={**STREAM.inputs, "pre": PRE},
        published="x float32[8, 128, 4, 256]; pre float32[8, 128, 4]",
    ),
    STREAM.module(
        4,
        "stream_mix",
        "Streams mixed by a matrix for each token.",
        MHC,
        "res @ x",
        inputs={**STREAM.inputs, "res": RES},
        published="x float32[8, 128, 4, 256]; res float32[8, 128, 4, 4]",
    ),
    STREAM.module(
        5,
        "stream_write",
        "The result of a layer written to all streams with the weights post.",
        MHC,
        "post.unsqueeze(-1) * y.unsqueeze(2)",
        inputs={"y": "torch.randn(batch, tokens, width)", "post": PRE},
        published="y float32[8, 128, 256]; post float32[8, 128, 4]",
    ),
    STREAM.module(
        6,
        "mhc_update",
        "Streams mixed by res, plus the result of a layer with the weights post.",
        MHC,
        UPDATE,
        inputs={**STREAM.inputs, "post": PRE, "res": RES, "y": "torch.randn(batch, tokens, width)"},
        published="x float32[8, 128, 4, 256]; post float32[8, 128, 4]; res float32[8, 128, 4, 4]; "
        "y float32[8, 128, 256]",
    ),
    STREAM.module(
        7,
        "mhc_module",
        "A connection around an identity layer: weights from the streams, their weighted sum, and the update.",
        MHC,
        lines(PROJECT, NORMALISE, "y = (x * pre.unsqueeze(-1)).sum(dim=2)", f"return {UPDATE}"),
        PROJECTIONS,
        sizes=FOUR,
        inputs=FOUR_INPUT,
        init="width",
        arguments="[256, 4, 20, 1e-05, 0.01, False]",
        streams=4,
        iterations=20,
        epsilon=1e-5,
    ),
    STREAM.module(
        8,
        "mhc_block2d",
        "A residual block of two 3 x 3 convolutions, connected through four groups of channels as streams.",
        f"{MHC}; He et al., Deep Residual Learning, 2016, arXiv:1512.03385",
        lines(GATES, NORMALISE, BLOCK),
        {
            **GATE_LAYERS,
            "layer": "nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), "
            "nn.BatchNorm2d(channels), nn.ReLU(), "
            "nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))",
        },
        sizes=IMAGE,
        inputs={"x": "torch.randn(batch, channels, height, width)"},
        init="channels hidden",
        published="x float32[8, 64, 32, 32]",
        arguments="[64, 64, 4, 1, 1, 64, 20, 1e-08, 1.0, True]",
        streams=4,
        iterations=20,
        temperature=1.0,
    ),
    STREAM.module(
        9,
        "mhc_block_bottleneck2d",
        "A bottleneck block of three convolutions, connected through four groups of channels as streams.",
        f"{MHC}; He et al., Deep Residual Learning, 2016, arXiv:1512.03385",
        lines(GATES, NORMALISE, BLOCK),
        {
            **GATE_LAYERS,
            "layer": "nn.Sequential(nn.Conv2d(channels, channels // 4, 1, bias=False), "
            "nn.BatchNorm2d(channels // 4), nn.ReLU(), "
            "nn.Conv2d(channels // 4, channels // 4, 3, padding=1, bias=False), "
            "nn.BatchNorm2d(channels // 4), nn.ReLU(), "
            "nn.Conv2d(channels // 4, channels, 1, bias=False), nn.BatchNorm2d(channels))",
        },
        sizes=CaseSizes(
            "batch channels hidden height width",
            public=(3, 40, 12, 7, 9),
            hidden=((1, 32, 9, 5, 7), (2, 24, 16, 8, 3), (4, 48, 10, 4, 4)),
            timing=(8, 128, 64, 16, 16),
        ),
        inputs={"x": "torch.randn(batch, channels, height, width)"},
        init="channels hidden",
        published="x float32[8, 256, 32, 32]",
        arguments="[256, 64, 4, 1, 1, 64, 20, 1e-08, 1.0, True]",
        streams=4,
        iterations=20,
        temperature=1.0,
    ),
    STREAM.module(
        10,
        "orthostochastic_project",
        "Squares of the entries of a nearly orthogonal matrix, from five steps of a Newton-Schulz iteration.",
        "Bernstein and Newhouse, Old Optimizer, New Norm, 2024, arXiv:2409.20325, on Newton-Schulz iterations",
        """
y = x / (torch.sqrt(x.square().sum()) + self.epsilon)
for _ in range(self.steps):
    square = y @ y.T
    y = self.linear * y + (self.cubic * square + self.quintic * square @ square) @ y
return y.square()""",
        sizes=CaseSizes("side", public=(8,), hidden=((5,), (12,), (3,)), timing=(256,)),
        inputs={"x": "torch.randn(side, side)"},
        published="x float32[8, 8]",
        arguments="[5, 1e-07, (3.0, -3.2, 1.2)]",
        category="math",
        steps=5,
        epsilon=1e-7,
        linear=3.0,
        cubic=-3.2,
        quintic=1.2,
    ),
    STREAM.module(
        11,
        "fused_mhc_kernels",
        "The weights pre, post and res from flat streams, through one projection to n * n + 2 * n numbers.",
        MHC,
        lines("flat = x", FUSED, NORMALISE, "return pre, post, res"),
        FUSED_LAYERS,
        sizes=FOUR,
        inputs={"x": "torch.randn(batch, tokens, 4 * width)"},
        init="width",
        published="x float32[8, 128, 1024]",
        arguments="[256, 4, 'f32']",
        streams=4,
        iterations=20,
        epsilon=1e-6,
    ),
    STREAM.module(
        12,
        "optimized_mhc_layer_with_fusion",
        "A connection around a linear layer, with streams made from one input and averaged to one output.",
        MHC,
        lines(
            "x = x.unsqueeze(2) * self.spread\nflat = x.flatten(2)",
            FUSED,
            NORMALISE,
            "y = self.layer((x * pre.unsqueeze(-1)).sum(dim=2))",
            f"return ({UPDATE}).mean(dim=2)",
        ),
        {**FUSED_LAYERS, "spread": "nn.Parameter(torch.randn(streams, width))", "layer": linear("width", "width")},
        sizes=FOUR,
        inputs={"x": "torch.randn(batch, tokens, width)"},
        init="width",
        published="x float32[8, 128, 256]",
        arguments="[256, 4, 'f32']",
        redundant="columns of the mixing matrix have the sum one, so that it cancels in the mean over streams",
        streams=4,
        iterations=20,
        epsilon=1e-6,
    ),
    STREAM.module(
        13,
        "static_mhc_hyper_connections",
        "A connection around an identity layer whose weights are learned and do not depend on the input.",
        f"Zhu et al., Hyper-Connections, 2024, arXiv:2409.19606; {MHC}",
        lines(
            "res = self.logits / self.temperature",
            NORMALISE,
            """
y = torch.softmax(self.pre, dim=0) @ x
return res @ x + self.post.unsqueeze(-1) * y.unsqueeze(1)""",
        ),
        {
            "logits": "nn.Parameter(torch.randn(streams, streams))",
            "pre": "nn.Parameter(torch.randn(streams))",
            "post": "nn.Parameter(torch.randn(streams))",
        },
        sizes=CaseSizes(
            "batch streams width", public=(3, 4, 24), hidden=((1, 3, 13), (2, 6, 40), (5, 2, 33)), timing=(512, 4, 256)
        ),
        inputs={"x": "torch.randn(batch, streams, width)"},
        init="streams",
        published="x float32[8, 4, 256]",
        arguments="[4, 256, 'sinkhorn', 10, 0.05, 5, 1e-07, (3.0, -3.2, 1.2), True, 0]",
        iterations=10,
        temperature=0.05,
    ),
    STREAM.module(
        14,
        "mhc_pre_block",
        "Before a layer, in bfloat16: the weighted sum of the streams, and the weights post and res for the update.",
        MHC,
        lines(
            WIDE,
            """
flat = wide(x).flatten(1)
mixes = (flat @ phi.T) * torch.rsqrt(flat.square().mean(dim=-1, keepdim=True) + self.epsilon)
pre = torch.sigmoid(mixes[:, :4] * scale[0] + bias[:4]) + self.epsilon
post = torch.sigmoid(mixes[:, 4:8] * scale[1] + bias[4:8])
res = (mixes[:, 8:] * scale[2] + bias[8:]).unflatten(1, (4, 4))
res = torch.softmax(res, dim=-1) + self.epsilon
res = res / (res.sum(dim=-2, keepdim=True) + self.epsilon)
for _ in range(self.iterations - 1):
    res = res / (res.sum(dim=-1, keepdim=True) + self.epsilon)
    res = res / (res.sum(dim=-2, keepdim=True) + self.epsilon)
y = (pre.unsqueeze(-1) * wide(x)).sum(dim=1)
return y.to(x.dtype), post.unsqueeze(-1), res""",
        ),
        sizes=CaseSizes("tokens width", public=(10, 24), hidden=((1, 13), (17, 40), (5, 33)), timing=(1024, 256)),
        inputs={
            "x": f"torch.randn(tokens, 4, width{HALF})",
            "phi": "torch.randn(24, 4 * width)",
            "scale": "torch.randn(3)",
            "bias": "torch.randn(24)",
        },
        published="x bfloat16[2048, 4, 2560]; phi float32[24, 10240]; scale float32[3]; bias float32[24]",
        arguments="[2560, 4, 1e-06, 1e-06, 1e-06, 1.0, 10]",
        iterations=10,
        epsilon=1e-6,
    ),
    STREAM.module(
        15,
        "mhc_post_block",
        "After a layer, in bfloat16: streams mixed by res, plus the layer's result with the weights post.",
        MHC,
        lines(WIDE, "return (res.transpose(1, 2) @ wide(x) + post * wide(y).unsqueeze(1)).to(y.dtype)"),
        sizes=CaseSizes(
            "tokens streams width",
            public=(10, 4, 24),
            hidden=((1, 3, 13), (17, 6, 40), (5, 2, 33)),
            timing=(1024, 4, 512),
        ),
        inputs={
            "y": f"torch.randn(tokens, width{HALF})",
            "x": f"torch.randn(tokens, streams, width{HALF})",
            "post": "torch.randn(tokens, streams, 1)",
            "res": "torch.randn(tokens, streams, streams)",
        },
        published="y bfloat16[4096, 2560]; x bfloat16[4096, 4, 2560]; post float32[4096, 4, 1]; "
        "res float32[4096, 4, 4]",
        arguments="[4, 2560]",
    ),
)
