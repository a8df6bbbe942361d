"""Class numbers as an input, drawn below another constant."""

import torch
from torch import nn

batch_size = 32768
num_classes = 4096


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.rand(num_classes))

    def forward(self, scores, targets):
        chosen = scores.gather(1, targets[:, None])[:, 0]
        return (torch.logsumexp(scores, 1) - chosen) * self.weights[targets]


def get_inputs():
    return [torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))]


def get_init_inputs():
    return []
