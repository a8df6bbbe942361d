"""Patches of an image as rows, whose size is a setting that no tensor has as a dimension; each is projected."""

import torch
import torch.nn as nn

batch, channels, side = 4, 3, 64
patch_size = 32
width = 128


class Model(nn.Module):
    def __init__(self, patch_size, channels, width):
        super().__init__()
        self.patch = patch_size
        self.project = nn.Linear(channels * patch_size**2, width)

    def forward(self, x):
        p = self.patch
        rows = x.unfold(2, p, p).unfold(3, p, p).reshape(x.shape[0], -1, p * p * x.shape[1])
        return self.project(rows)


def get_inputs():
    return [torch.rand(batch, channels, side, side)]


def get_init_inputs():
    return [patch_size, channels, width]
