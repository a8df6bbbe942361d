"""Heads split off and joined by names of dimensions."""

import torch
import torch.nn as nn
from einops import rearrange

batch, length, width = 8, 64, 96
heads = 4


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        x = rearrange(x, "b n (h d) -> b h n d", h=self.heads)
        return rearrange(torch.softmax(x, dim=-1), "b h n d -> b n (h d)")


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [heads]
