"""Vectors of tokens, added up."""

import torch
import torch.nn as nn

vocabulary, width, batch, length = 1000, 128, 16, 64


class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)

    def forward(self, tokens):
        return self.table(tokens).sum(dim=1)


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, width]
