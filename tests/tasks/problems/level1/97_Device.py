"""Asks for a device and half precision, keeps state between calls, and writes its sizes where they are used."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = None

    def forward(self, x, y):
        if self.mean is None:
            self.mean = torch.zeros(1, device=x.device, dtype=x.dtype)
        self.mean = 0.5 * self.mean + 0.5 * x
        return (self.mean.cuda() + y).to("cuda")


def get_inputs():
    return [torch.rand(512, 1024, device="cuda", dtype=torch.float16), torch.rand(512, 1024).half().cuda()]


def get_init_inputs():
    return []
