"""The remainder of a division by a broadcast tensor."""

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def forward(self, x, y):
        return torch.remainder(x, y)


def get_inputs():
    return [torch.randn(batch, columns) * 10, torch.rand(columns) + 1]


def get_init_inputs():
    return []
