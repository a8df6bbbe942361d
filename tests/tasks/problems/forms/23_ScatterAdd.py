"""Values added to rows at given places, which may repeat."""

import torch
import torch.nn as nn

batch, columns, count = 128, 512, 96


class Model(nn.Module):
    def forward(self, x, at, values):
        return x.scatter_add(1, at, values)


def get_inputs():
    return [torch.randn(batch, columns), torch.randint(0, columns, (batch, count)), torch.randn(batch, count)]


def get_init_inputs():
    return []
