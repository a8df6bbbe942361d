"""Half precision, and a helper function at the top of the file."""

import torch
from torch import nn

rows, columns = 4096, 4096


def smooth(x, beta):
    return x * torch.sigmoid(beta * x)


class Model(nn.Module):
    def __init__(self, beta=1.5):
        super().__init__()
        self.beta = beta

    def forward(self, x):
        return smooth(x, self.beta)


def get_inputs():
    return [torch.rand(rows, columns, dtype=torch.float16)]


def get_init_inputs():
    return []
