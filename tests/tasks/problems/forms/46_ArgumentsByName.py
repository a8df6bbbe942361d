"""A dictionary and a list of tensors as arguments."""

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def forward(self, parts, weights):
        return parts["left"] * weights[0] + parts["right"] * weights[1]


def get_inputs():
    return [
        {"left": torch.randn(batch, columns), "right": torch.randn(batch, columns)},
        [torch.rand(columns), torch.rand(columns)],
    ]


def get_init_inputs():
    return []
