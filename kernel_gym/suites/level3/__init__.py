"""KernelBench's level 3: whole networks, written anew from their papers at sizes that a simulator can judge.

Widths, resolutions and lengths are smaller than in the papers; depth and connections are those of the papers unless a
description says otherwise.
"""

from __future__ import annotations

from kernel_gym.suites.level3 import classic, dense, mobile, perceptrons, recurrent, residual, sequences, transformers

_FAMILIES = (classic, dense, mobile, perceptrons, recurrent, residual, sequences, transformers)

_DEFINITIONS = [definition for family in _FAMILIES for definition in family.DEFINITIONS]
DEFINITIONS = tuple(sorted(_DEFINITIONS, key=lambda definition: definition.number or 0))
