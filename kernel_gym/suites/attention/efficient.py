"""Attention whose cost grows more slowly than the square of the length: kernels, low ranks, sparse patterns."""

from __future__ import annotations

from kernel_gym.suites.attention.exact import FUSED, JOIN, SEQUENCE, SPLIT_FUSED, lines
from kernel_gym.suites.definitions import CaseSizes

#: Lengths that are multiples of 16.
BLOCKS = CaseSizes(
    "batch length width",
    public=(3, 48, 128),
    hidden=((1, 80, 72), (5, 32, 200), (2, 64, 8)),
    timing=(4, 256, 512),
)
#: Attention with a mask of positions that may be attended to.
MASKED = """
scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
x = torch.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1) @ v"""
PLACES = """
place = torch.arange(x.shape[1])
apart = place[:, None] - place[None, :]"""
#: Keys and queries as features without sign, and the sum over keys that they replace.
KERNEL = "x = q @ (k.transpose(-1, -2) @ v) / (q @ k.sum(dim=2).unsqueeze(-1) + self.epsilon)"

DEFINITIONS = (
    SEQUENCE.module(
        11,
        "linear_attention",
        "Attention with the kernel elu(x) + 1 in place of softmax: keys and values are multiplied first.",
        "Katharopoulos et al., Transformers are RNNs, 2020, arXiv:2006.16236",
        lines(SPLIT_FUSED, "q, k = F.elu(q) + 1, F.elu(k) + 1", KERNEL, JOIN),
        FUSED,
        arguments="[512, 8, 'elu']",
        epsilon=1e-6,
    ),
    SEQUENCE.module(
        12,
        "performer_attention",
        "Attention with positive random features that approximate the softmax kernel.",
        "Choromanski et al., Rethinking Attention with Performers, 2021, arXiv:2009.14794",
        lines(
            SPLIT_FUSED,
            """
q, k = (y * q.shape[-1] ** -0.25 for y in (q, k))
q, k = (y @ self.features - y.square().sum(dim=-1, keepdim=True) / 2 for y in (q, k))
q = torch.exp(q - q.amax(dim=-1, keepdim=True)) + self.epsilon
k = torch.exp(k - k.amax(dim=(-1, -2), keepdim=True)) + self.epsilon
x = q @ (k.transpose(-1, -2) @ v) / (q @ k.sum(dim=2).unsqueeze(-1))""",
            JOIN,
        ),
        {**FUSED, "features": "nn.Buffer(torch.randn(width // heads, random_features))"},
        arguments="[512, 8]",
        random_features=24,
        epsilon=1e-4,
    ),
    SEQUENCE.module(
        13,
        "linformer_attention",
        "Attention over keys and values that are projected along the sequence to a lower rank.",
        "Wang et al., Linformer, 2020, arXiv:2006.04768",
        lines(
            SPLIT_FUSED,
            """
k, v = self.key_rank @ k, self.value_rank @ v
x = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v""",
            JOIN,
        ),
        {
            **FUSED,
            "key_rank": "nn.Parameter(torch.randn(rank, length) / math.sqrt(length))",
            "value_rank": "nn.Parameter(torch.randn(rank, length) / math.sqrt(length))",
        },
        init="width length rank",
        sizes=CaseSizes(
            "batch length width rank",
            public=(3, 10, 128, 5),
            hidden=((1, 17, 72, 4), (5, 7, 200, 3), (2, 33, 8, 9)),
            timing=(4, 256, 512, 32),
        ),
        arguments="[512, 8, 512, 32]",
    ),
    SEQUENCE.module(
        14,
        "nystrom_attention",
        "Attention through landmarks, the means of segments; the inverse of their kernel comes from six iterations.",
        "Xiong et al., Nystromformer, 2021, arXiv:2102.03902",
        lines(
            SPLIT_FUSED,
            """
q = q / math.sqrt(q.shape[-1])
marks_q, marks_k = (y.unflatten(2, (self.landmarks, -1)).mean(dim=3) for y in (q, k))
first = torch.softmax(q @ marks_k.transpose(-1, -2), dim=-1)
middle = torch.softmax(marks_q @ marks_k.transpose(-1, -2), dim=-1)
last = torch.softmax(marks_q @ k.transpose(-1, -2), dim=-1)
columns = middle.sum(dim=-2).amax(dim=-1)[..., None, None]
inverse = middle.transpose(-1, -2) / columns
one = torch.eye(self.landmarks, dtype=x.dtype)
for _ in range(6):
    y = middle @ inverse
    inverse = 0.25 * inverse @ (13 * one - y @ (15 * one - y @ (7 * one - y)))
x = first @ inverse @ (last @ v)""",
            JOIN,
        ),
        FUSED,
        sizes=BLOCKS,
        arguments="[512, 8, 32]",
        landmarks=8,
    ),
    SEQUENCE.module(
        15,
        "cosformer_attention",
        "Linear attention on rectified queries and keys, weighted by the cosine of the distance of their positions.",
        "Qin et al., cosFormer, 2022, arXiv:2202.08791",
        lines(
            SPLIT_FUSED,
            """
angle = (torch.arange(x.shape[1], dtype=x.dtype) * (0.5 * math.pi / x.shape[1])).unsqueeze(-1)
q, k = torch.relu(q), torch.relu(k)
q_cos, q_sin = q * torch.cos(angle), q * torch.sin(angle)
k_cos, k_sin = k * torch.cos(angle), k * torch.sin(angle)
total = q_cos @ (k_cos.transpose(-1, -2) @ v) + q_sin @ (k_sin.transpose(-1, -2) @ v)
weight = q_cos @ k_cos.sum(dim=2).unsqueeze(-1) + q_sin @ k_sin.sum(dim=2).unsqueeze(-1)
x = total / (weight + self.epsilon)""",
            JOIN,
        ),
        FUSED,
        arguments="[512, 8]",
        epsilon=1e-6,
    ),
    SEQUENCE.module(
        16,
        "local_attention",
        "Self-attention within a sliding window of positions.",
        "Parmar et al., Image Transformer, 2018, arXiv:1802.05751, on one-dimensional local attention",
        lines(SPLIT_FUSED, PLACES, "seen = apart.abs() <= self.window // 2", MASKED, JOIN),
        FUSED,
        arguments="[512, 8, 32]",
        window=8,
    ),
    SEQUENCE.module(
        17,
        "block_sparse_attention",
        "Self-attention within blocks of neighbouring positions.",
        "Child et al., Generating Long Sequences with Sparse Transformers, 2019, arXiv:1904.10509",
        lines(
            SPLIT_FUSED,
            """
q, k, v = (y.unflatten(2, (-1, self.block)) for y in (q, k, v))
x = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
x = x.flatten(2, 3)""",
            JOIN,
        ),
        FUSED,
        sizes=BLOCKS,
        arguments="[512, 8, 32]",
        block=16,
    ),
    SEQUENCE.module(
        18,
        "strided_attention",
        "Self-attention over the nearest positions and over every fourth position.",
        "Child et al., Generating Long Sequences with Sparse Transformers, 2019, arXiv:1904.10509",
        lines(
            SPLIT_FUSED,
            PLACES,
            "seen = (apart.abs() < self.stride) | (apart % self.stride == 0)",
            MASKED,
            JOIN,
        ),
        FUSED,
        arguments="[512, 8, 4]",
        stride=4,
    ),
    SEQUENCE.module(
        19,
        "longformer_attention",
        "Self-attention within a sliding window; the first position attends to all and all attend to it.",
        "Beltagy et al., Longformer, 2020, arXiv:2004.05150",
        lines(
            SPLIT_FUSED,
            PLACES,
            "seen = (apart.abs() <= self.window // 2) | (place[:, None] == 0) | (place[None, :] == 0)",
            MASKED,
            JOIN,
        ),
        FUSED,
        arguments="[512, 8, 32]",
        window=8,
    ),
    SEQUENCE.module(
        20,
        "bigbird_attention",
        "Self-attention of blocks over their neighbours, over the first block and over blocks drawn at random.",
        "Zaheer et al., Big Bird, 2020, arXiv:2007.14062",
        lines(
            SPLIT_FUSED,
            """
block = torch.arange(x.shape[1] // self.block)
seen = (block[:, None] - block[None, :]).abs() <= 1
seen = seen | (block[:, None] == 0) | (block[None, :] == 0) | (self.drawn > 0)
scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
scores = scores.unflatten(3, (-1, self.block)).unflatten(2, (-1, self.block))
scores = scores.masked_fill(~seen[:, None, :, None], float("-inf")).flatten(4, 5).flatten(2, 3)
x = torch.softmax(scores, dim=-1) @ v""",
            JOIN,
        ),
        {
            **FUSED,
            "drawn": "nn.Buffer((torch.rand(length // block, length // block) "
            "< random_blocks * block / length).float())",
        },
        init="width length",
        sizes=BLOCKS,
        arguments="[512, 8, 32, 3]",
        block=16,
        random_blocks=1,
    ),
)
