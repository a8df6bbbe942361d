"""Typed, layered configuration: defaults, then a YAML file, then the command line; unknown keys are errors.

The layers resolve to one frozen `RunConfig`; its `digest` names everything that a run's results depend on. The defaults
of `env` are those of `kernel_gym.envs.options.Options`, the other defaults are in `defaults.yaml`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from kernel_gym.data_files import parse_yaml
from kernel_gym.envs.options import MemoryMode, Options, Pages, Sizes, Stages, StartPoints
from kernel_gym.envs.pool import Composition
from kernel_gym.errors import ConfigError
from kernel_gym.llm import credentials
from kernel_gym.verdict import Policy

#: Options of a model endpoint that say how it is reached and paid, not what comes back: they may change under a run.
INCIDENTAL = frozenset(
    {
        *("base_url", "timeout_s", "retries", "stream", "send_seed", "limit_name"),
        *("price_in", "price_out", "spending_limit", "check"),
        *("threads", "gpu_layers", "batch_size", "torch_device"),
    }
)
_OPTIONS = ("author_options", "embedder_options", "inspection")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EnvConfig(_Frozen):
    """The options of the environment that can be written in YAML; all agents of a comparison share them.

    `bank` is a bank that runs on a cluster share; None: a run keeps its own in its folder.
    `forecast` chooses the forecast environment: no kernel is compiled, verdicts are forecast. `table` is of runs by
    earlier versions, which took kernels and verdicts from a table; they can be read and not continued.
    """

    forecast: bool = False
    table: str = ""
    device: str
    device_options: dict[str, Any]
    policy: Policy = "strict"
    service: str = ""
    cluster: str = ""
    bank: str | None = None
    author: str
    author_options: dict[str, Any]
    writers: int = Field(0, ge=0)
    embedder: str
    embedder_options: dict[str, Any] = Field(default_factory=dict)
    inspection: dict[str, Any] = Field(default_factory=dict)
    picks: int = Field(ge=1, le=64)
    pool_factor: int = Field(ge=1, le=64)
    pool_schedule: tuple[tuple[int, int], ...]
    start_points: StartPoints = "fastest"
    drafts: int = Field(1, ge=1, le=64)
    sizes: Sizes = "timing"
    coverage: float = Field(0.0, ge=0, lt=1)
    stages: Stages
    memory: MemoryMode
    repair: bool = False
    pages: Pages = "all"
    curriculum: str
    composition: Composition
    #: Runs by earlier versions did not write it.
    layout: int = Field(1, ge=1, le=2)

    @property
    def offline(self) -> bool:
        """Whether verdicts come without a device."""
        return self.forecast or bool(self.table)

    @field_validator("bank")
    @classmethod
    def _on_a_cluster(cls, bank: str | None) -> str | None:
        if bank is not None and not bank.startswith("ray://"):
            raise ValueError("the bank of a run is in its folder; one that runs share is ray://HOST:PORT/NAME")
        return bank

    @field_validator(*_OPTIONS)
    @classmethod
    def _without_secrets(cls, options: dict[str, Any]) -> dict[str, Any]:
        credentials.reject_secrets(options)
        return options


class RunConfig(_Frozen):
    """One run: an agent, the tasks, the budget, the seed and the environment's options."""

    agent: str
    agent_options: dict[str, Any]
    suite: str
    tasks: tuple[str, ...]
    budget: int = Field(ge=1)
    rounds: int = Field(1, ge=1)
    seed: int = Field(ge=0)
    workers: int = Field(ge=0)
    batch: int = Field(0, ge=0)
    checkpoints: int = Field(0, ge=0)
    initial_memory: str = ""
    initial_agent: str = ""
    learning: bool = True
    wandb: str = ""
    env: EnvConfig

    @property
    def digest(self) -> str:
        """Hash of everything that decides the results: not workers, tracking, nor how a model is reached."""
        return hashlib.sha256(json.dumps(self._decisive, sort_keys=True).encode()).hexdigest()

    def differing_keys(self, other: RunConfig) -> list[str]:
        """Return the keys, dotted, that decide the results and whose values differ in another configuration."""
        return sorted(_differing(self._decisive, other._decisive))

    def describe(self, keys: Iterable[str]) -> str:
        """Return the values of dotted keys in words; an option that is not set is `unset`."""
        data = self.model_dump(mode="json")
        return ", ".join(f"{key} {_value(data, key)}" for key in keys)

    @property
    def _decisive(self) -> dict[str, Any]:
        data = self.model_dump(
            mode="json",
            exclude={"workers": True, "checkpoints": True, "wandb": True, "env": {"writers", "service", "cluster"}},
        )
        data["agent_options"].pop("ray_address", None)
        if data["env"]["bank"] is None:
            del data["env"]["bank"]
        for part in _OPTIONS:
            data["env"][part] = {key: value for key, value in data["env"][part].items() if key not in INCIDENTAL}
        return data


def _differing(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in one.keys() | other.keys():
        value, others = one.get(key), other.get(key)
        if isinstance(value, Mapping) and isinstance(others, Mapping):
            yield from _differing(value, others, f"{prefix}{key}.")
        elif value != others:
            yield f"{prefix}{key}"


def _value(data: Mapping[str, Any], key: str) -> Any:
    value: Any = data
    for part in key.split("."):
        value = value.get(part, "unset") if isinstance(value, Mapping) else "unset"
    return value


def resolve(
    file: Path | None = None, overrides: Mapping[str, Any] | None = None, sets: Sequence[str] = ()
) -> RunConfig:
    """Resolve the layers to one configuration.

    Args:
        file: YAML file laid over the defaults.
        overrides: Nested values laid over the file.
        sets: `key=value` words of the command line, keys dotted, values YAML; laid over everything.

    Returns:
        The configuration.

    Raises:
        ConfigError: A file cannot be read, a key is unknown or a value is not allowed.
    """
    data = _defaults()
    if file is not None:
        _merge(data, _read(file))
    _merge(data, dict(overrides or {}))
    for word in sets:
        _merge(data, setting(word))
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_first_line(error)) from error


def _defaults() -> dict[str, Any]:
    data: dict[str, Any] = deepcopy(_packaged())
    options = Options()
    return data | {"env": {name: getattr(options, name) for name in EnvConfig.model_fields if hasattr(options, name)}}


@cache
def _packaged() -> Any:
    return parse_yaml(files("kernel_gym").joinpath("defaults.yaml").read_text())


def _read(file: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(file.read_text("utf-8")) or {}
    except UnicodeDecodeError as error:
        raise ConfigError(f"configuration {file} is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read configuration {file}: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"configuration {file} must be a mapping of keys to values")
    return data


def setting(word: str) -> dict[str, Any]:
    """Return a word of the command line like `env.picks=3` as nested data."""
    key, separator, value = word.partition("=")
    if not separator or not key:
        raise ConfigError(f"a setting is key=value, not {word!r}; for example env.picks=3")
    try:
        data: Any = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"the value of {word!r} is not YAML: {' '.join(str(error).split())}") from error
    for part in reversed(key.split(".")):
        data = {part: data}
    return dict(data)


def merged(base: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return `layer` laid over `base`, mappings key by key; neither is changed."""
    result = deepcopy(dict(base))
    _merge(result, layer)
    return result


def _merge(base: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Lay `layer` over `base` in place; options of plug-ins (`*_options`) are merged key by key too."""
    for key, value in layer.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def _first_line(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown configuration key {key!r}{_nearest(key)}"
    return f"configuration key {key!r}: {first['msg']}"


def _nearest(key: str) -> str:
    """Return the known key that is nearest to an unknown one, as a question; empty if none is near."""
    keys = [*RunConfig.model_fields, *(f"env.{name}" for name in EnvConfig.model_fields)]
    same_name = [name for name in keys if name.rpartition(".")[2] == key.rpartition(".")[2]]
    near = same_name or get_close_matches(key, keys, 1) or get_close_matches(f"env.{key}", keys, 1, cutoff=0.8)
    return f"; did you mean {near[0]!r}?" if near else ""
