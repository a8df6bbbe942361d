"""Needs a library that nobody has."""

import a_library_that_nobody_has
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return a_library_that_nobody_has.relu(x)


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
