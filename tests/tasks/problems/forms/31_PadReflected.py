"""An image with its edges mirrored, then a mean of neighbours."""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch, channels, height, width = 4, 8, 48, 48


class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3, stride=1)


def get_inputs():
    return [torch.rand(batch, channels, height, width)]


def get_init_inputs():
    return []
