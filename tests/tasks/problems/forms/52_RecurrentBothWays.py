"""A gated recurrent layer read forwards and backwards, with a first state of zeros that the forward makes."""

import torch
import torch.nn as nn

batch, steps, columns, width = 4, 96, 32, 48


class Model(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.width = width
        self.layer = nn.LSTM(columns, width, batch_first=True, bidirectional=True, bias=False)

    def forward(self, x):
        state = torch.zeros(2, x.shape[0], self.width, device=x.device)
        outputs, (state, memory) = self.layer(x, (state, state))
        return outputs, memory


def get_inputs():
    return [torch.randn(batch, steps, columns)]


def get_init_inputs():
    return [columns, width]
