"""Operators of inference in bfloat16: attention with caches, mixtures of experts, norms, quantisation."""

from __future__ import annotations

from kernel_gym.suites.attention.exact import lines
from kernel_gym.suites.attention.family import Family
from kernel_gym.suites.definitions import CaseSizes

HALF = ", dtype=torch.bfloat16"
#: Arithmetic is in float32, as it is on the device, and in float64 where the reference runs in float64.
WIDE = "wide = lambda y: y.to(torch.promote_types(y.dtype, torch.float32))"
FLASH = Family(
    sizes=CaseSizes(
        "batch length heads groups depth",
        public=(2, 14, 6, 3, 20),
        hidden=((1, 17, 4, 4, 13), (3, 9, 8, 2, 16), (1, 33, 2, 1, 24)),
        timing=(1, 256, 16, 8, 128),
    ),
    inputs={
        "q": f"torch.randn(batch, length, heads, depth{HALF})",
        "k": f"torch.randn(batch, length, groups, depth{HALF})",
        "v": f"torch.randn(batch, length, groups, depth{HALF})",
    },
    init="",
    published="q bfloat16[2, 512, 16, 128]; k, v bfloat16[2, 512, 8, 128]",
)
ROWS = Family(
    sizes=CaseSizes("tokens width", public=(12, 160), hidden=((1, 37), (17, 61), (5, 300)), timing=(1024, 4096)),
    inputs={"x": f"torch.randn(tokens, width{HALF})"},
    init="width",
    published="x bfloat16[2048, 4096]",
    category="normalization",
)
#: The weights of causal attention; queries are grouped by the head of keys that they share.
WEIGHTS = """
queries = wide(q).unflatten(2, (k.shape[2], -1)).permute(0, 2, 3, 1, 4)
keys, values = (wide(y).transpose(1, 2).unsqueeze(2) for y in (k, v))
place = torch.arange(q.shape[1])
scores = queries @ keys.transpose(-1, -2) / math.sqrt(q.shape[-1])
weight = torch.softmax(scores.masked_fill(place[None, :] > place[:, None], float("-inf")), dim=-1)"""
RMS = "y * torch.rsqrt(y.square().mean(dim=-1, keepdim=True) + self.epsilon) * wide(self.weight)"
MOE = "Shazeer et al., The Sparsely-Gated Mixture-of-Experts Layer, 2017, arXiv:1701.06538"

DEFINITIONS = (
    FLASH.module(
        66,
        "flash_attention_fwd",
        "Causal attention in bfloat16 with heads of queries that share keys and values.",
        "Dao, FlashAttention-2, 2023, arXiv:2307.08691",
        lines(WIDE, WEIGHTS, "return (weight @ values).permute(0, 3, 1, 2, 4).flatten(2, 3).to(q.dtype)"),
        arguments="[16, 8, 128, True, (-1, -1), 0.0]",
    ),
    FLASH.module(
        67,
        "flash_attention_bwd",
        "Gradients of causal attention in bfloat16 with respect to queries, keys and values.",
        "Dao, FlashAttention-2, 2023, arXiv:2307.08691, algorithm 2",
        lines(
            WIDE,
            WEIGHTS,
            """
slope = wide(grad).unflatten(2, (k.shape[2], -1)).permute(0, 2, 3, 1, 4)
grad_weight = slope @ values.transpose(-1, -2)
grad_scores = weight * (grad_weight - (weight * grad_weight).sum(dim=-1, keepdim=True)) / math.sqrt(q.shape[-1])
grad_q = (grad_scores @ keys).permute(0, 3, 1, 2, 4).flatten(2, 3)
grad_k = (grad_scores.transpose(-1, -2) @ queries).sum(dim=2).transpose(1, 2)
grad_v = (weight.transpose(-1, -2) @ slope).sum(dim=2).transpose(1, 2)
return grad_q.to(q.dtype), grad_k.to(q.dtype), grad_v.to(q.dtype)""",
        ),
        inputs={"grad": f"torch.randn(batch, length, heads, depth{HALF})", **FLASH.inputs},
        published="grad, q bfloat16[2, 512, 16, 128]; k, v bfloat16[2, 512, 8, 128]",
        arguments="[16, 8, 128, True, (-1, -1), 0.0]",
    ),
    FLASH.module(
        68,
        "paged_attention_kv_cache",
        "Attention of one new token over keys and values in pages, which a table lists for each sequence.",
        "Kwon et al., Efficient Memory Management with PagedAttention, 2023, arXiv:2309.06180",
        lines(
            WIDE,
            """
k, v = (wide(y[table]).flatten(1, 2).transpose(1, 2) for y in (keys, values))
queries = wide(q).squeeze(1).unflatten(1, (keys.shape[2], -1))
scores = queries @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
unseen = torch.arange(k.shape[2]) > lengths[:, None]
weight = torch.softmax(scores.masked_fill(unseen[:, None, None], float("-inf")), dim=-1)
return (weight @ v).flatten(1, 2).unsqueeze(1).to(q.dtype)""",
        ),
        sizes=CaseSizes(
            "batch pages page heads groups depth slots",
            public=(3, 20, 4, 6, 2, 16, 5),
            hidden=((1, 9, 8, 4, 4, 13, 3), (2, 17, 6, 8, 2, 24, 7), (5, 6, 3, 3, 1, 10, 2)),
            timing=(4, 128, 16, 16, 8, 128, 32),
        ),
        inputs={
            "q": f"torch.randn(batch, 1, heads, depth{HALF})",
            "keys": f"torch.randn(pages, page, groups, depth{HALF})",
            "values": f"torch.randn(pages, page, groups, depth{HALF})",
            "lengths": "torch.randint(0, slots * page, (batch,), dtype=torch.int32)",
            "table": "torch.randint(0, pages, (batch, slots), dtype=torch.int32)",
        },
        published="q bfloat16[4, 1, 16, 128]; keys, values bfloat16[256, 16, 8, 128]; lengths int32[4]; "
        "table int32[4, 64]",
        arguments="[16, 8, 128, 16, True]",
    ),
    FLASH.module(
        69,
        "multi_head_latent_attention",
        "Attention of one new token over latent vectors in pages, whose first part are the values of all heads.",
        "DeepSeek-AI, DeepSeek-V2, 2024, arXiv:2405.04434",
        lines(
            WIDE,
            """
latent = wide(cache[table]).flatten(1, 2).squeeze(2)
scores = wide(q).squeeze(1) @ latent.transpose(-1, -2) / math.sqrt(q.shape[-1])
unseen = torch.arange(latent.shape[1]) > lengths[:, None]
weight = torch.softmax(scores.masked_fill(unseen[:, None], float("-inf")), dim=-1)
return (weight @ latent[:, :, : latent.shape[2] - self.rotary]).unsqueeze(1).to(q.dtype)""",
        ),
        sizes=CaseSizes(
            "batch pages page heads latent slots",
            public=(3, 20, 4, 6, 32, 5),
            hidden=((1, 9, 8, 4, 13, 3), (2, 17, 6, 7, 24, 7), (5, 6, 3, 9, 40, 2)),
            timing=(4, 128, 16, 16, 512, 32),
        ),
        inputs={
            "q": f"torch.randn(batch, 1, heads, latent + 64{HALF})",
            "cache": f"torch.randn(pages, page, 1, latent + 64{HALF})",
            "table": "torch.randint(0, pages, (batch, slots), dtype=torch.int32)",
            "lengths": "torch.randint(0, slots * page, (batch,), dtype=torch.int32)",
        },
        published="q bfloat16[4, 1, 16, 576]; cache bfloat16[256, 16, 1, 576]; table int32[4, 64]; lengths int32[4]",
        arguments="[16, 576, 512, 16, True]",
        rotary=64,
    ),
    FLASH.module(
        70,
        "dense_sparse_attention",
        "Attention of one new token over a few chosen latent vectors of a cache in pages.",
        "DeepSeek-AI, DeepSeek-V3.2, 2025, arXiv:2512.02556, sparse attention on latent vectors",
        lines(
            WIDE,
            """
latent = wide(cache.flatten(0, 1).squeeze(1)[chosen.squeeze(1)])
scores = wide(q).squeeze(1) @ latent.transpose(-1, -2) / math.sqrt(q.shape[-1])
weight = torch.softmax(scores, dim=-1)
return (weight @ latent[:, :, : latent.shape[2] - self.rotary]).unsqueeze(1).to(q.dtype)""",
        ),
        sizes=CaseSizes(
            "batch pages page heads latent top",
            public=(3, 20, 4, 6, 32, 5),
            hidden=((1, 9, 8, 4, 13, 3), (2, 17, 6, 7, 24, 9), (5, 6, 3, 9, 40, 2)),
            timing=(16, 128, 16, 16, 512, 64),
        ),
        inputs={
            "q": f"torch.randn(batch, 1, heads, latent + 64{HALF})",
            "cache": f"torch.randn(pages, page, 1, latent + 64{HALF})",
            "chosen": "torch.randint(0, pages * page, (batch, 1, top), dtype=torch.int32)",
        },
        published="q bfloat16[4, 1, 16, 576]; cache bfloat16[256, 16, 1, 576]; chosen int32[4, 1, 8]",
        arguments="[16, 576, 512, 16, 8]",
        rotary=64,
    ),
    ROWS.module(
        71,
        "gemm",
        "Product of a matrix and the transposed weights, in bfloat16.",
        "Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms, 1990",
        lines(WIDE, "return F.linear(wide(x), wide(self.weight)).to(x.dtype)"),
        {"weight": f"nn.Parameter(torch.randn(outputs, inputs{HALF}))"},
        sizes=CaseSizes(
            "rows inputs outputs",
            public=(12, 64, 48),
            hidden=((1, 37, 32), (17, 61, 16), (33, 128, 80)),
            timing=(512, 1024, 1024),
        ),
        inputs={"x": f"torch.randn(rows, inputs{HALF})"},
        init="inputs outputs",
        arguments="[4096, 4096]",
        category="matmul",
    ),
    ROWS.module(
        72,
        "grouped_gemm",
        "Product of every row with the weights of the row's group, in bfloat16.",
        f"Gale et al., MegaBlocks, 2022, arXiv:2211.15841; {MOE}",
        lines(
            WIDE,
            """
member = group[:, None] == torch.arange(self.weight.shape[0])
y = (member.unsqueeze(2) * wide(x).unsqueeze(1)).flatten(1)
return (y @ wide(self.weight).transpose(0, 1).flatten(1).T).to(x.dtype)""",
        ),
        {"weight": f"nn.Parameter(torch.randn(groups, outputs, inputs{HALF}))"},
        sizes=CaseSizes(
            "rows groups outputs inputs",
            public=(14, 5, 24, 32),
            hidden=((1, 3, 13, 37), (17, 7, 16, 21), (9, 2, 40, 60)),
            timing=(512, 8, 256, 512),
        ),
        inputs={
            "x": f"torch.randn(rows, inputs{HALF})",
            "group": "torch.randint(0, groups, (rows,), dtype=torch.int32)",
        },
        init="groups outputs inputs",
        published="x bfloat16[4096, 4096]; group int32[4096]",
        arguments="[64, 1024, 4096]",
        category="matmul",
    ),
    ROWS.module(
        73,
        "rope",
        "Queries and keys rotated by angles from tables, which grow with the tokens' positions.",
        "Su et al., RoFormer: Rotary Position Embedding, 2021, arXiv:2104.09864",
        lines(
            WIDE,
            """
cosine, sine = self.cosine[positions].unsqueeze(1), self.sine[positions].unsqueeze(1)
rotated = []
for y in (q, k):
    left, right = wide(y).unflatten(-1, (2, -1)).unbind(2)
    rotated.append(torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1).to(y.dtype))
return rotated[0], rotated[1]""",
        ),
        {
            name: f"nn.Buffer(torch.{function}(torch.outer(torch.arange(longest), "
            "10000.0 ** (-torch.arange(half) / half))))"
            for name, function in (("cosine", "cos"), ("sine", "sin"))
        },
        sizes=CaseSizes(
            "tokens heads half longest",
            public=(12, 3, 20, 40),
            hidden=((1, 5, 8, 17), (17, 2, 13, 64), (9, 4, 32, 33)),
            timing=(1024, 32, 64, 2048),
        ),
        inputs={
            "q": f"torch.randn(tokens, heads, 2 * half{HALF})",
            "k": f"torch.randn(tokens, heads, 2 * half{HALF})",
            "positions": "torch.randint(0, longest, (tokens,), dtype=torch.int32)",
        },
        init="half longest",
        published="q, k bfloat16[2048, 32, 128]; positions int32[2048]",
        arguments="[128, 8192]",
        category="attention",
    ),
    ROWS.module(
        74,
        "router",
        "The eight largest scores of each token after softmax, with their places.",
        MOE,
        lines(
            WIDE,
            """
logits = wide(x)
largest = logits.amax(dim=-1, keepdim=True)
total = torch.exp(logits - largest).sum(dim=-1, keepdim=True)
place = torch.arange(x.shape[1])
weights, experts = [], []
for _ in range(self.top):
    logit, expert = logits.max(dim=-1, keepdim=True)
    weights.append(torch.exp(logit - largest) / total)
    experts.append(expert)
    logits = logits.masked_fill(place == expert, float("-inf"))
return torch.cat(weights, dim=-1).to(x.dtype), torch.cat(experts, dim=-1).int()""",
        ),
        sizes=CaseSizes("tokens width", public=(12, 40), hidden=((1, 37), (17, 13), (5, 70)), timing=(2048, 64)),
        init="",
        published="x bfloat16[2048, 64]",
        arguments="[8]",
        category="index",
        top=8,
    ),
    ROWS.module(
        75,
        "rms_norm",
        "Rows divided by their root mean square and scaled, in bfloat16.",
        "Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, arXiv:1910.07467",
        lines(WIDE, "y = wide(x)", f"return ({RMS}).to(x.dtype)"),
        {"weight": f"nn.Parameter(torch.randn(width{HALF}))"},
        arguments="[4096, 1e-06]",
        epsilon=1e-6,
    ),
    ROWS.module(
        76,
        "add_rms_norm",
        "The sum of input and residual divided by its root mean square and scaled; the sum is the second output.",
        "Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, arXiv:1910.07467",
        lines(WIDE, "y = wide(x) + wide(residual)", f"return ({RMS}).to(x.dtype), y.to(x.dtype)"),
        {"weight": f"nn.Parameter(torch.randn(width{HALF}))"},
        inputs={"x": f"torch.randn(tokens, width{HALF})", "residual": f"torch.randn(tokens, width{HALF})"},
        published="x, residual bfloat16[2048, 4096]",
        arguments="[4096, 1e-06]",
        epsilon=1e-6,
    ),
    ROWS.module(
        77,
        "permute",
        "Tokens copied to the rows of their experts, in the order of the tokens, and which token each row holds.",
        MOE,
        lines(
            WIDE,
            """
choices = (chosen.flatten()[:, None] == torch.arange(self.experts)).to(torch.promote_types(x.dtype, torch.float32))
rank = choices.cumsum(dim=0) - 1
place = torch.arange(self.capacity)
rows = choices.unsqueeze(2) * (rank.unsqueeze(2) == place)
rows = rows.flatten(1).unflatten(0, (-1, chosen.shape[1])).sum(dim=1)
held = (rows * (torch.arange(x.shape[0])[:, None] + 1)).sum(dim=0) - 1
return (rows.T @ wide(x)).to(x.dtype), held.int()""",
        ),
        sizes=CaseSizes(
            "tokens width top",
            public=(20, 40, 3),
            hidden=((1, 37, 2), (17, 24, 4), (9, 61, 5)),
            timing=(128, 1024, 4),
        ),
        inputs={
            "x": f"torch.randn(tokens, width{HALF})",
            "chosen": "torch.randint(0, 16, (tokens, top), dtype=torch.int32)",
        },
        init="",
        published="x bfloat16[512, 4096]; chosen int32[512, 8]",
        arguments="[64, 8, 128], for 64 experts with 128 rows each",
        category="index",
        experts=16,
        capacity=32,
    ),
    ROWS.module(
        78,
        "unpermute",
        "Rows of experts weighted and added up to the tokens that they belong to.",
        MOE,
        lines(
            WIDE,
            """
spread = (source[:, None] == torch.arange(weights.numel())) * wide(weights).flatten()
spread = spread.unflatten(1, (-1, weights.shape[1])).sum(dim=2)
return (spread.T @ wide(x)).to(x.dtype)""",
        ),
        sizes=CaseSizes(
            "rows width tokens top",
            public=(40, 48, 12, 3),
            hidden=((9, 37, 1, 2), (33, 24, 17, 4), (20, 61, 7, 5)),
            timing=(1024, 1024, 128, 8),
        ),
        inputs={
            "x": f"torch.randn(rows, width{HALF})",
            "weights": f"torch.randn(tokens, top{HALF})",
            "source": "torch.randint(0, tokens * top, (rows,))",
        },
        init="",
        published="x bfloat16[8192, 4096]; weights bfloat16[512, 8]; source int64[8192]",
        arguments="[8]",
        category="index",
    ),
    ROWS.module(
        79,
        "dy_quantize",
        "Groups of 128 neighbours scaled to whole numbers of eight bits by their largest magnitude; and the scales.",
        "Dettmers et al., LLM.int8(), 2022, arXiv:2208.07339",
        lines(
            WIDE,
            """
y = wide(x).unflatten(1, (-1, self.group))
largest = y.abs().amax(dim=2, keepdim=True).clamp(min=1e-10)
return torch.round(y * 127 / largest).flatten(1).to(torch.int8), (largest / 127).squeeze(2)""",
        ),
        sizes=CaseSizes("tokens groups", public=(12, 3), hidden=((1, 5), (17, 2), (5, 1)), timing=(1024, 32)),
        inputs={"x": f"torch.randn(tokens, 128 * groups{HALF})"},
        init="",
        arguments="['per_token_group', 128]",
        category="math",
        group=128,
        repaired="int8 in place of fp8, which Ascend 910B does not have",
    ),
)
