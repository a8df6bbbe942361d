"""The modules of the suites `attention`, `attention_parts` and `mhc`, formulated a second time in float64.

Attention is computed key by key with a running maximum and a running sum, convolutions as sums over shifted images,
sparse patterns from their definition pair by pair, gradients by autograd, Fourier transforms by torch.fft. A function
has the name of its task and gets the module, for its weights, and the inputs.
"""

from formulations import gates, hyper_connections, images, inference, parts, sequences, tokens, windows
from formulations.registry import ATTENTION, MHC, PARTS

__all__ = [
    "ATTENTION",
    "MHC",
    "PARTS",
    "gates",
    "hyper_connections",
    "images",
    "inference",
    "parts",
    "sequences",
    "tokens",
    "windows",
]
