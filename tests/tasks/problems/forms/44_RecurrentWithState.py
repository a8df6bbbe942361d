"""A gated recurrent layer whose first state is an argument."""

import torch
import torch.nn as nn

batch, steps, columns, width = 4, 6, 32, 48


class Model(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.layer = nn.GRU(columns, width)

    def forward(self, x, state):
        outputs, state = self.layer(x, state)
        return outputs, state


def get_inputs():
    return [torch.randn(steps, batch, columns), torch.randn(1, batch, width)]


def get_init_inputs():
    return [columns, width]
