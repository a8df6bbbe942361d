import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(1), x.argmax(1)


def get_inputs():
    return [torch.randn(512, 2048)]


def get_init_inputs():
    return []
