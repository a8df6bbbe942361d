"""A block built from helper classes, in a list and in a sequence."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x * torch.sigmoid(x * self.weight)


class Model(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.gates = nn.ModuleList([Gate(width) for _ in range(depth)])
        self.rest = nn.Sequential(nn.LayerNorm(width), nn.ReLU())

    def forward(self, x):
        for gate in self.gates:
            x = gate(x)
        return self.rest(x)


batch, width, depth = 4096, 256, 3


def get_inputs():
    return [torch.rand(batch, width)]


def get_init_inputs():
    return [width, depth]
