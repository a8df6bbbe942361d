"""Bits that two tensors share."""

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bitwise_and(a, b)


def get_inputs():
    return [torch.randint(0, 1 << 16, (batch, columns), dtype=torch.int32) for _ in range(2)]


def get_init_inputs():
    return []
