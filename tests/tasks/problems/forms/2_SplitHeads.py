"""Queries, keys and values of different widths, split off one projection."""

import torch
import torch.nn as nn

batch, length, width = 8, 128, 96
keys, values = 32, 64


class Model(nn.Module):
    def __init__(self, width, keys, values):
        super().__init__()
        self.keys, self.values = keys, values
        self.qkv = nn.Linear(width, 2 * keys + values)

    def forward(self, x):
        q, k, v = self.qkv(x).split([self.keys, self.keys, self.values], dim=2)
        scores = q @ k.transpose(1, 2) / self.keys**0.5
        return torch.softmax(scores, dim=-1) @ v


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, keys, values]
