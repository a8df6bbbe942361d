"""A tensor divided by its largest element, taken out as a number."""

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def forward(self, x):
        return x / x.abs().max().item()


def get_inputs():
    return [torch.randn(batch, columns)]


def get_init_inputs():
    return []
