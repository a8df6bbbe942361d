"""A value where two conditions hold, else zero."""

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def forward(self, x, y):
        return torch.where((x > 0) & (y > 0), x * y, torch.zeros_like(x))


def get_inputs():
    return [torch.randn(batch, columns) for _ in range(2)]


def get_init_inputs():
    return []
