"""Running sums and products along an axis."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.generators.apprentice.nest import NestWriter
from kernel_gym.generators.apprentice.plan import Access, Nest
from kernel_gym.generators.apprentice.script import Script

_MERGE = {"sum": "Add", "prod": "Mul"}
_IDENTITY = {"sum": "0.0f", "prod": "1.0f"}
