"""The attention set of the EvoKernel authors: 79 modules, each written anew from its paper."""

from __future__ import annotations

from kernel_gym.suites.attention import (
    channel_gates,
    efficient,
    exact,
    image,
    inference,
    spatial_gates,
    tokens,
    windows,
)

_FAMILIES = (exact, efficient, channel_gates, spatial_gates, tokens, image, windows, inference)

_DEFINITIONS = [definition for family in _FAMILIES for definition in family.DEFINITIONS]
DEFINITIONS = tuple(sorted(_DEFINITIONS, key=lambda definition: definition.number or 0))
