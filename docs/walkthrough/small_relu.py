"""ReLU at a size at which even a scalar loop can be timed."""

import torch
from torch import nn

rows = 32
columns = 512


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
