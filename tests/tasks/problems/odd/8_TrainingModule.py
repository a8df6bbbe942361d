"""Dropout and batch normalisation, which behave otherwise when a module is evaluated."""

import torch
from torch import nn

batch_size = 16384
in_features = 1024


class Model(nn.Module):
    def __init__(self, in_features, p):
        super().__init__()
        self.norm = nn.BatchNorm1d(in_features)
        self.drop = nn.Dropout(p)
        self.train()

    def forward(self, x):
        return self.drop(self.norm(x))


def get_inputs():
    return [torch.randn(batch_size, in_features)]


def get_init_inputs():
    return [in_features, 0.5]
