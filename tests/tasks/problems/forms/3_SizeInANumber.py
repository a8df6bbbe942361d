"""A mean over all elements but the first of each row, with the count taken from the shape."""

import torch
import torch.nn as nn

batch, columns = 128, 768


class Model(nn.Module):
    def forward(self, x):
        return x[:, 1:].sum(dim=1) / (x.shape[1] - 1)


def get_inputs():
    return [torch.randn(batch, columns)]


def get_init_inputs():
    return []
