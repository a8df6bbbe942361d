"""Tensors in a tuple and in a dictionary."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, pair, named):
        left, right = pair
        return {"product": left * right + named["shift"], "largest": left.amax(dim=-1)}


rows = 8192
columns = 2048


def get_inputs():
    return [(torch.rand(rows, columns), torch.rand(rows, columns)), {"shift": torch.rand(columns)}]


def get_init_inputs():
    return []
