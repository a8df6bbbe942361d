"""A smaller image, averaged over the pixels that fall together."""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch, channels, height, width = 4, 8, 64, 64
new_height, new_width = 24, 40


class Model(nn.Module):
    def __init__(self, new_height, new_width):
        super().__init__()
        self.height, self.width = new_height, new_width

    def forward(self, x):
        return F.interpolate(x, size=(self.height, self.width), mode="bilinear", antialias=True)


def get_inputs():
    return [torch.rand(batch, channels, height, width)]


def get_init_inputs():
    return [new_height, new_width]
