"""A gate from two equal parts of the channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch, channels, height, width = 4, 32, 32, 32


class Model(nn.Module):
    def forward(self, x):
        a, b = torch.chunk(x, 2, dim=1)
        return a * F.silu(b)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return []
