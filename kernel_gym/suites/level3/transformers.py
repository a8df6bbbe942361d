"""Transformers on images."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes
from kernel_gym.suites.level3.network import IMAGES, network

VIT = "Dosovitskiy et al., An Image is Worth 16x16 Words, 2020, arXiv:2010.11929"

WINDOWS = """
def windows(x, size):
    \"\"\"Cut images (batch, height, width, channels) into windows (batch, count, size * size, channels).\"\"\"
    x = x.unflatten(2, (-1, size)).unflatten(1, (-1, size))
    return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def joined(x, size, height):
    \"\"\"Put windows together again.\"\"\"
    x = x.unflatten(2, (size, size)).unflatten(1, (height // size, -1))
    return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)


class Merge(nn.Module):
    \"\"\"Joins squares of four elements to one with twice the channels.\"\"\"

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.project = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], dim=-1)
        return self.project(self.norm(x))
"""
MIXER = """
class Block(nn.Module):
    \"\"\"Mixes the elements of a window by a grouped convolution, one group a head, then the channels of each.\"\"\"

    def __init__(self, width, heads, size, shift):
        super().__init__()
        self.heads, self.size, self.shift = heads, size, shift
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Conv1d(heads * size * size, heads * size * size, 1, groups=heads)
        self.perceptron = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y, low = self.first(x), self.size - self.shift
        if self.shift:
            y = F.pad(y, (0, 0) + (low, self.shift) * 2)
        height = y.shape[1]
        y = windows(y, self.size)
        tokens = y.flatten(0, 1).unflatten(-1, (self.heads, -1)).transpose(1, 2).flatten(1, 2)
        tokens = self.mix(tokens).unflatten(1, (self.heads, -1)).transpose(1, 2).flatten(2)
        y = joined(tokens.unflatten(0, (x.shape[0], -1)), self.size, height)
        if self.shift:
            y = y[:, low : low + x.shape[1], low : low + x.shape[2]]
        x = x + y
        return x + self.perceptron(self.second(x))
"""
COSINE = """
class Block(nn.Module):
    \"\"\"Cosine attention within windows, which are shifted in every second block; norms follow the layers.\"\"\"

    def __init__(self, width, heads, size, shift):
        super().__init__()
        self.heads, self.size, self.shift = heads, size, shift
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((heads, 1, 1), 10.0))
        places = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None]).float()
        self.register_buffer("apart", (torch.sign(apart) * torch.log2(1 + apart.abs())).permute(1, 2, 0))
        self.bias = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, heads, bias=False))
        self.perceptron = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y = torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x
        y = windows(y, self.size)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(2, 3) for part in self.joint(y).chunk(3, dim=-1))
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-1, -2) * self.scale
        scores = scores + 16 * torch.sigmoid(self.bias(self.apart)).permute(2, 0, 1)
        y = self.out((torch.softmax(scores, dim=-1) @ v).transpose(2, 3).flatten(3))
        y = joined(y, self.size, x.shape[1])
        y = torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y
        x = x + self.first(y)
        return x + self.second(self.perceptron(x))
"""
ENCODER = """
class Encoder(nn.Module):
    \"\"\"A block of attention and a perceptron with shortcuts, normalised behind each.\"\"\"

    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = self.first(x + self.attention(x, x, x, need_weights=False)[0])
        return self.second(x + self.perceptron(x))
"""
#: Two groups of two blocks, with a merge between them.
SWIN = {
    "patches": "nn.Conv2d(3, 16, 4, 4)",
    "early": "nn.Sequential(Block(16, 2, 4, 0), Block(16, 2, 4, 2))",
    "merge": "Merge(16)",
    "late": "nn.Sequential(Block(32, 4, 4, 0), Block(32, 4, 4, 2))",
    "norm": "nn.LayerNorm(32)",
    "head": "nn.Linear(32, 10)",
}
SWIN_FORWARD = """
x = self.patches(x).permute(0, 2, 3, 1)
x = self.late(self.merge(self.early(x)))
return self.head(self.norm(x).mean((1, 2)))"""

DEFINITIONS = (
    network(
        28, "vision_transformer", "Patches and a class token through three encoder blocks, then a perceptron.", VIT,
        """
x = x.unflatten(3, (-1, 8)).unflatten(2, (-1, 8)).permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
x = torch.cat([self.token.expand(x.shape[0], -1, -1), self.embed(x)], dim=1) + self.positions
return self.head(self.blocks(x)[:, 0])""",
        {
            "embed": "nn.Linear(192, 32)",
            "token": "nn.Parameter(torch.randn(1, 1, 32))",
            "positions": "nn.Parameter(torch.randn(1, 17, 32))",
            "blocks": "nn.Sequential(*(Encoder(32, 4) for _ in range(3)))",
            "head": "nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 10))",
        },
        modules=ENCODER, side=32,
        published="batch 2, images of 3 x 224 x 224, patches of 16, width 512, six blocks of 8 heads, 10 classes",
    ),
    network(
        29, "swin_mlp", "Windows whose elements are mixed by grouped convolutions, in two groups of two blocks.",
        "Liu et al., Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, 2021, arXiv:2103.14030",
        SWIN_FORWARD, SWIN, modules=f"{WINDOWS}\n{MIXER}", side=32,
        published="batch 10, images of 3 x 224 x 224, windows of 7, depths 2, 2, 6, 2",
    ),
    network(
        30, "swin_transformer_v2", "Cosine attention within shifted windows, in two groups of two blocks.",
        "Liu et al., Swin Transformer V2: Scaling Up Capacity and Resolution, 2021, arXiv:2111.09883",
        SWIN_FORWARD, SWIN, modules=f"{WINDOWS}\n{COSINE}", side=32,
        published="batch 10, images of 3 x 224 x 224, windows of 7, depths 2, 2, 6, 2",
    ),
    network(
        31, "vision_attention", "Attention over all positions of an image, with a shortcut and a norm.", VIT,
        """
tokens = x.flatten(2).transpose(1, 2)
y = self.norm(tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0])
return y.transpose(1, 2).unflatten(2, (x.shape[2], -1))""",
        {"attention": "nn.MultiheadAttention(32, 4, batch_first=True)", "norm": "nn.LayerNorm(32)"},
        inputs={"x": "torch.randn(batch, 32, height, 12)"},
        sizes=CaseSizes("batch height", public=(2, 6), hidden=((1, 5), (3, 7)), timing=(4, 16)),
        published="batch 2, 128 channels of 128 x 128, 4 heads",
    ),
    network(
        32, "convolutional_vision_transformer", "Tokens of a strided convolution through three encoder blocks.",
        "Wu et al., CvT: Introducing Convolutions to Vision Transformers, 2021, arXiv:2103.15808",
        """
x = self.project(torch.flatten(self.patches(x), 1)).unsqueeze(1)
x = self.blocks(torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1))
return self.head(x[:, 0])""",
        {
            "patches": "nn.Conv2d(3, 24, 4, 4)",
            "project": "nn.Linear(1536, 32)",
            "token": "nn.Parameter(torch.randn(1, 1, 32))",
            "blocks": "nn.Sequential(*(Encoder(32, 4) for _ in range(3)))",
            "head": "nn.Linear(32, 10)",
        },
        sizes=IMAGES, modules=ENCODER, side=32,
        published="batch 10, images of 3 x 32 x 32, patches of 4, width 128, six blocks of 4 heads, 1000 classes",
    ),
)  # fmt: skip
