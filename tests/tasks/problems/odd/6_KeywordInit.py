"""What the module is constructed with as keywords, in the form that some collections use."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, eps: float = 1e-5):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.scale


batch_size, features = 65536, 512


def get_inputs():
    return [torch.rand(batch_size, features)]


def get_init_inputs():
    return [[features], {"eps": 1e-3}]
