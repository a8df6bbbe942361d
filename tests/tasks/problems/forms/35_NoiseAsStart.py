"""A recurrence that starts from drawn values."""

import torch
import torch.nn as nn

batch, steps, columns, width = 16, 4, 64, 96


class Model(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.width = width
        self.inner = nn.Linear(columns, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        state = torch.randn(x.shape[0], self.width, device=x.device)
        for step in range(x.shape[1]):
            state = torch.tanh(self.inner(x[:, step]) + self.outer(state))
        return state


def get_inputs():
    return [torch.randn(batch, steps, columns)]


def get_init_inputs():
    return [columns, width]
