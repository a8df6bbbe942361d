"""A recurrent layer with two states."""

import torch
import torch.nn as nn

batch, steps, columns, width = 4, 6, 32, 48


class Model(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.layer = nn.LSTM(columns, width, num_layers=2, batch_first=True)

    def forward(self, x):
        outputs, _ = self.layer(x)
        return outputs[:, -1]


def get_inputs():
    return [torch.randn(batch, steps, columns)]


def get_init_inputs():
    return [columns, width]
