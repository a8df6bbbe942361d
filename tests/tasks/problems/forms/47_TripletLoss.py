"""The mean of hinges on differences of distances."""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch, columns = 128, 768


class Model(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin)


def get_inputs():
    return [torch.randn(batch, columns) for _ in range(3)]


def get_init_inputs():
    return [1.0]
