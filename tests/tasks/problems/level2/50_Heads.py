"""Helper class, a mask kept as a buffer, an assertion on divisibility, scalars and None among the inputs."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    width: int
    heads: int


class Heads(nn.Module):
    def __init__(self, settings: Settings, length: int):
        super().__init__()
        assert settings.width % settings.heads == 0
        self.project = nn.Linear(settings.width, 3 * settings.width)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)))
        self.settings = settings

    def forward(self, x, scale):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.settings.heads, -1).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) * scale
        scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)


class Model(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = Heads(Settings(width, heads), length)

    def forward(self, x, options, unused):
        return {"mixed": self.heads(x, options["scale"]), "sum": x.sum()}


batch_size = 64
sequence = 512
width, heads = 768, 12


def get_inputs():
    return [torch.rand(batch_size, sequence, width), {"scale": 0.25, "causal": True}, None]


def get_init_inputs():
    return [width, heads, sequence]
