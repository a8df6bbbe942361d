"""A step of Adam on a parameter, which changes its moments."""

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def __init__(self, rate, rows, width):
        super().__init__()
        self.rate = rate
        self.register_buffer("mean", torch.zeros(rows, width))
        self.register_buffer("square", torch.zeros(rows, width))

    def forward(self, parameter, gradient):
        self.mean.mul_(0.9).add_(gradient, alpha=0.1)
        self.square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        return parameter - self.rate * self.mean / (self.square.sqrt() + 1e-8)


def get_inputs():
    return [torch.randn(batch, columns), torch.randn(batch, columns)]


def get_init_inputs():
    return [0.01, batch, columns]
