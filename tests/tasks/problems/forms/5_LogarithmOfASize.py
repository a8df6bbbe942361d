"""An entropy divided by its largest value, the logarithm of the number of classes."""

import math

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def forward(self, x):
        p = torch.softmax(x, dim=1)
        return -(p * torch.log(p + 1e-9)).sum(dim=1) / math.log(x.shape[1])


def get_inputs():
    return [torch.randn(batch, columns)]


def get_init_inputs():
    return []
