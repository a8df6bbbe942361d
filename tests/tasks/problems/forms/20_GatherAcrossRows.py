"""Elements of each column at given rows, in three dimensions."""

import torch
import torch.nn as nn

batch, length, width, count = 8, 128, 64, 48


class Model(nn.Module):
    def forward(self, x, at):
        return torch.gather(x, 1, at.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


def get_inputs():
    return [torch.randn(batch, length, width), torch.randint(0, length, (batch, count))]


def get_init_inputs():
    return []
