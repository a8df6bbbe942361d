"""Causal attention, state spaces and aggregation of descriptors."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.suites.level3.network import network

GPT = "Radford et al., Language Models are Unsupervised Multitask Learners, 2019"
MAMBA = "Dao and Gu, Transformers are SSMs: Structured State Space Duality, 2024, arXiv:2405.21060"
VLAD = "Arandjelovic et al., NetVLAD: CNN architecture for weakly supervised place recognition, 2015, arXiv:1511.07247"
TOKENS = CaseSizes("batch tokens", public=(2, 24), hidden=((1, 17), (3, 11)), timing=(4, 128))
TOKEN_INPUT = {"x": "torch.randn(batch, tokens, width)"}

CAUSAL = """
class Causal(nn.Module):
    \"\"\"Attention of every token over itself and earlier ones.\"\"\"

    def __init__(self, width, heads, weigh):
        super().__init__()
        self.heads, self.weigh = heads, weigh
        self.joint = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.joint(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        ahead = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = self.weigh(scores.masked_fill(ahead, float("-inf"))) @ v
        return self.out(y.transpose(1, 2).flatten(2))


def softmax(scores):
    return torch.softmax(scores, dim=-1)
"""
SEGMENTS = """
def decay(a):
    \"\"\"Return the sums over all segments of the last dimension; minus infinity for empty ones.\"\"\"
    total = torch.cumsum(a, dim=-1)
    ahead = torch.ones(a.shape[-1], a.shape[-1], dtype=torch.bool).triu(1)
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(ahead, float("-inf"))
"""
#: The chunked form of the state space: within chunks by attention, between chunks by their states.
STATES = """
x, a, b, c = (part.unflatten(1, (-1, self.block)) for part in (x, self.a, self.b, self.c))
a = a.permute(0, 3, 1, 2)
total = torch.cumsum(a, dim=-1)
states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, torch.exp(total[..., -1:] - total), x)
states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
carried = torch.exp(decay(F.pad(total[..., -1], (1, 0))))
states = torch.einsum("bhzc,bchpn->bzhpn", carried, states)
"""


def _mamba(number: int, name: str, what: str, result: str) -> TaskDefinition:
    return network(
        number,
        name,
        f"The chunked scan of a selective state space, {what}.",
        MAMBA,
        f"{STATES}{result}",
        {
            "a": "nn.Parameter(-torch.rand(batch, length, heads))",
            "b": "nn.Parameter(torch.randn(batch, length, heads, state) / 4)",
            "c": "nn.Parameter(torch.randn(batch, length, heads, state) / 4)",
        },
        inputs={"x": "torch.randn(batch, length, heads, width)"},
        sizes=CaseSizes("width", public=(8,), hidden=((5,), (1,)), timing=(32,)),
        modules=SEGMENTS,
        init="batch length heads state block",
        published="batch 2048, length 128, 8 heads of 64, state 16, blocks of 64",
        batch=2,
        length=32,
        heads=2,
        state=4,
        block=8,
    )


def _vlad(number: int, name: str, ghosts: int) -> TaskDefinition:
    return network(
        number,
        name,
        f"Residuals of descriptors against six centres, weighted by soft assignment, with {ghosts} ghost centres.",
        VLAD,
        """
weights = torch.softmax(self.norm(x.flatten(0, 1) @ self.assign), dim=-1)[:, :6].unflatten(0, (x.shape[0], -1))
sums = weights.sum(dim=1, keepdim=True) * self.centres
vlad = (weights.transpose(1, 2) @ x).transpose(1, 2) - sums
vlad = F.normalize(vlad)
return F.normalize(vlad.flatten(1))""",
        {
            "assign": f"nn.Parameter(torch.randn(width, {6 + ghosts}) / math.sqrt(width))",
            "centres": "nn.Parameter(torch.randn(1, width, 6) / math.sqrt(width))",
            "norm": f"nn.BatchNorm1d({6 + ghosts})",
        },
        inputs=TOKEN_INPUT,
        sizes=TOKENS,
        init="width",
        published=f"batch 2048, 100 descriptors of 512, 32 centres and {16 * (ghosts > 0)} ghosts",
        width=32,
    )


DEFINITIONS = (
    network(
        43, "min_gpt_causal_attention", "Multi-head attention of tokens over earlier ones.", GPT, "self.attention(x)",
        {"attention": "Causal(width, 4, softmax)"},
        inputs=TOKEN_INPUT, sizes=TOKENS, modules=CAUSAL, init="width",
        published="batch 128, 512 tokens of 768, 8 heads", width=32,
    ),
    network(
        44, "mini_gpt_block", "A block of causal attention and a perceptron, each normalised first, with shortcuts.",
        GPT,
        """
x = x + self.attention(self.first(x))
return x + self.perceptron(self.second(x))""",
        {
            "attention": "Causal(width, 4, softmax)",
            "first": "nn.LayerNorm(width)",
            "second": "nn.LayerNorm(width)",
            "perceptron": "nn.Sequential(nn.Linear(width, 4 * width), nn.GELU('tanh'), nn.Linear(4 * width, width))",
        },
        inputs=TOKEN_INPUT, sizes=TOKENS, modules=CAUSAL, init="width",
        published="batch 128, 512 tokens of 768, 8 heads", width=32,
    ),
    _vlad(46, "net_vlad_with_ghost_clusters", 3),
    _vlad(47, "net_vlad_no_ghost_clusters", 0),
    _mamba(48, "mamba2_return_y", "its outputs", """
within = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, torch.exp(decay(a)), x)
between = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states[:, :-1], torch.exp(total))
return (within + between).flatten(1, 2)"""),
    _mamba(49, "mamba2_return_final_state", "its last state", "return states[:, -1]"),
    network(
        50, "relu_self_attention", "Causal attention whose weights are the positive scores instead of a softmax.",
        "Wortsman et al., Replacing softmax with ReLU in Vision Transformers, 2023, arXiv:2309.08586",
        "self.attention(x)", {"attention": "Causal(width, 4, torch.relu)"},
        inputs=TOKEN_INPUT, sizes=TOKENS, modules=CAUSAL, init="width",
        published="batch 16, 1024 tokens of 768, 12 heads", width=32,
    ),
)  # fmt: skip
