"""A gated unit whose two halves are split off one projection."""

import torch
import torch.nn as nn

batch, columns, width = 128, 256, 384


class Model(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.width = width
        self.project = nn.Linear(columns, 2 * width)

    def forward(self, x):
        hidden, gate = torch.split(self.project(x), [self.width, self.width], dim=-1)
        return hidden * torch.sigmoid(gate)


def get_inputs():
    return [torch.randn(batch, columns)]


def get_init_inputs():
    return [columns, width]
