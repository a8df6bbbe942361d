"""Rows of a table added to at given places, which may repeat."""

import torch
import torch.nn as nn

entries, columns, count = 512, 256, 64


class Model(nn.Module):
    def forward(self, table, at, rows):
        return table.index_put((at,), rows, accumulate=True)


def get_inputs():
    return [torch.randn(entries, columns), torch.randint(0, entries, (count,)), torch.randn(count, columns)]


def get_init_inputs():
    return []
