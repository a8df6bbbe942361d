import torch
from torch import nn

N = 2048 * 2


class Model(nn.Module):
    def forward(self, left, right):
        return torch.matmul(left, right)


def get_inputs():
    return [torch.rand(N, N), torch.rand(N, N)]


def get_init_inputs():
    return []
