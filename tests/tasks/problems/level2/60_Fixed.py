import torch
from torch import nn

features = 64


class Model(nn.Module):
    """No dimension can change without changing the parameter."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features, features))

    def forward(self, x):
        return x * self.weight + x.flip(0)


def get_inputs():
    return [torch.rand(features, features)]


def get_init_inputs():
    return [features]
