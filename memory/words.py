"""Words of kernels, PyTorch modules and prose, and their weights in the vector of a text.

`DataCopyPad`, `data_copy_pad` and `data copy pad` are the same three words; `nn.ReLU`, `torch.relu` and `Relu` are the
same word. Numbers are dropped, because sizes differ between tasks that are otherwise alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*|(?<= )@(?= )")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d[a-z]?")

#: Words of names that capitals would split wrongly, and of other names for the same thing.
SYNONYMS = {
    "relu": ("relu",),
    "relu6": ("relu", "clamp"),
    "leakyrelu": ("leaky", "relu"),
    "prelu": ("leaky", "relu"),
    "gelu": ("gelu",),
    "elu": ("elu",),
    "selu": ("selu", "elu"),
    "celu": ("celu", "elu"),
    "silu": ("silu", "swish"),
    "swish": ("silu", "swish"),
    "hardtanh": ("hard", "tanh", "clamp"),
    "hardswish": ("hard", "silu", "swish"),
    "hardsigmoid": ("hard", "sigmoid"),
    "softplus": ("softplus",),
    "softmax": ("softmax",),
    "logsoftmax": ("log", "softmax"),
    "matmul": ("matmul",),
    "mm": ("matmul",),
    "bmm": ("batch", "matmul"),
    "addmm": ("matmul", "bias"),
    "gemm": ("matmul",),
    "@": ("matmul",),
    "clamp": ("clamp",),
    "clip": ("clamp",),
    "amax": ("max", "reduce"),
    "amin": ("min", "reduce"),
    "argmax": ("argmax", "max", "index"),
    "argmin": ("argmin", "min", "index"),
    "layernorm": ("layer", "norm"),
    "batchnorm": ("batch", "norm"),
    "rmsnorm": ("rms", "norm"),
    "groupnorm": ("group", "norm"),
    "instancenorm": ("instance", "norm"),
    "logsumexp": ("log", "sum", "exp"),
    "cumsum": ("cumsum", "cumulative", "sum"),
    "cumprod": ("cumprod", "cumulative", "prod"),
    "maxpool": ("max", "pool"),
    "avgpool": ("avg", "pool"),
    "conv": ("conv", "convolution"),
    "convolution": ("conv", "convolution"),
    "datacopy": ("data", "copy"),
}

#: Words that nearly every kernel or module has, so that they say little about the task.
BOILERPLATE = frozenset(
    """
    a an and are as at be but by can for from has have if in into is it its more must no not of on one only or per so
    that the then there they this to use used uses using when which with without you your
    import torch nn functional module modules class def self super init forward return none model get inputs input
    output outputs example args kwargs device shape dim size sizes batch features randn rand tensor tensors true false
    float int uint int32 int64 uint32 uint64 uint8 void const auto static extern template typename struct public private
    define include namespace inline operator kernel ascend ascendc aicore global gm addr ptr block core cores num count
    length len tile tiles tiling total offset index idx i j k n m t x y z dst src local buffer buffers buf queue que in
    out vecin vecout veccalc position alloc free en de pipe copy data compute process launch stream inputs outputs
    workspace nullptr min args value values elements element size numel bytes
    """.split()  # noqa: SIM905 - reads better than two hundred quoted words
)

#: Weight of a boilerplate word; any other word has the weight 1.
BOILERPLATE_WEIGHT = 0.15


#: Digest of the tables above. Vectors made with other tables are not comparable.
TABLES = hashlib.sha256(repr((SYNONYMS, sorted(BOILERPLATE), BOILERPLATE_WEIGHT)).encode()).hexdigest()[:8]


def words(text: str) -> Iterator[str]:
    """Return the words of a text in lower case, in order."""
    return chain.from_iterable(map(_words_of_line, text.splitlines()))


@lru_cache(maxsize=32768)
def _words_of_line(line: str) -> tuple[str, ...]:
    # Cached by line: most lines of a kernel occur in many others, and no word crosses the end of a line.
    return tuple(chain.from_iterable(map(_words_of, _IDENTIFIER.findall(line))))


def _words_of(identifier: str) -> Iterable[str]:
    whole = identifier.lower()
    if whole in SYNONYMS:
        return SYNONYMS[whole]
    parts = (part.lower() for part in _PART.findall(identifier))
    synonyms = (SYNONYMS.get(word, (word,)) for word in parts if len(word) > 1 or word.isalpha())
    return chain.from_iterable(synonyms)


def weight(word: str) -> float:
    """Return the weight of a word in the vector of a text."""
    return BOILERPLATE_WEIGHT if word in BOILERPLATE or len(word) == 1 else 1.0
