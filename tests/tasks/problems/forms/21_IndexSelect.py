"""Columns of a matrix at given places."""

import torch
import torch.nn as nn

batch, columns, count = 128, 512, 96


class Model(nn.Module):
    def forward(self, x, at):
        return torch.index_select(x, 1, at)


def get_inputs():
    return [torch.randn(batch, columns), torch.randint(0, columns, (count,))]


def get_init_inputs():
    return []
