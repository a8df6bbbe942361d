"""The action `fit` of `kernel-gym author`: fits an author profile to figures of authors without memory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_gym import suites
from kernel_gym.errors import ConfigError

if TYPE_CHECKING:
    from kernel_gym.authors.apprentice.calibration.fit import Fit
    from kernel_gym.authors.apprentice.calibration.targets import Targets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the action."""
    group = parser.add_argument_group("fit")
    group.add_argument("--out", type=Path, metavar="FILE", help="write the fitted profile to a YAML file")
    group.add_argument("--base", metavar="PROFILE", help="profile to begin with, in place of the targets' own")
    group.add_argument("--generations", type=int, default=60, help="generations of the search (default: %(default)s)")
    group.add_argument("--members", type=int, default=16, help="size of the ensemble (default: %(default)s)")
    group.add_argument("--workers", type=int, default=1, help="processes that compute figures (default: %(default)s)")
    group.add_argument("--persons", type=int, default=4, help="authors drawn for each profile (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Fit a profile and print its figures beside the targets."""
    from kernel_gym.authors.apprentice import Apprentice
    from kernel_gym.authors.apprentice.behaviour.profile import profile_members
    from kernel_gym.authors.apprentice.calibration.fit import fit, fit_members
    from kernel_gym.authors.apprentice.calibration.idiom_table import idiom_table
    from kernel_gym.authors.apprentice.calibration.protocols import Protocols
    from kernel_gym.authors.apprentice.calibration.targets import load_targets, packaged_targets

    if arguments.targets is None:
        raise ConfigError(f"name the targets: a YAML file, or one of {', '.join(packaged_targets())}")
    targets = load_targets(arguments.targets)
    base = arguments.base or targets.base
    author = Apprentice(base)
    names = sorted({suite for figure in targets.figures for suite in figure.suites})
    table = idiom_table([task for name in names for task in suites.load_suite(name)], author)
    protocols = Protocols(table, arguments.persons)
    search = {
        "generations": arguments.generations,
        "seed": arguments.seed,
        "workers": arguments.workers,
        "progress": lambda generation, deviance: print(
            f"generation {generation} of {arguments.generations}: deviance {deviance:.2f}", file=sys.stderr
        ),
    }
    if profile_members(base):
        result = fit_members(targets, protocols, base, **search)
    else:
        result = fit(targets, protocols, author.profile, members=arguments.members, **search)
    _print(result)
    if arguments.out is not None:
        arguments.out.write_text(profile_text(result, targets))
        print(f"wrote {arguments.out}: use it with --profile {arguments.out}~0")
    return 0


def _print(result: Fit) -> None:
    width = max(len(row.label) for row in result.rows)
    print(f"{'figure':{width}}  target  fitted  95% interval")
    for row in result.rows:
        mark = "" if row.within else "  outside"
        print(f"{row.label:{width}}  {row.target:6.2f}  {row.fitted:6.3f}  [{row.low:.2f}, {row.high:.2f}]{mark}")
    inside = sum(row.within for row in result.rows)
    print(f"{inside} of {len(result.rows)} targets lie in the interval of the fitted share")
    print(f"deviance {result.deviance:.2f} after {result.evaluations} profiles")
    print(f"ensemble of {len(result.ensemble)}, deviance up to {max(result.deviances):.2f}:")
    for label, name in _labels(result.ensemble):
        values = [member[name] for member in result.ensemble]
        print(f"  {label:10} {values[0]:8.3f}  from {min(values):.3f} to {max(values):.3f}")


def _labels(ensemble: Sequence[dict[str, float]]) -> list[tuple[str, str]]:
    """Return how each constant is called in the table, with its name; misreadings with the same odds are one row."""
    from kernel_gym.authors.apprentice.behaviour.misreading import KINDS

    first, *others = KINDS
    if not all(len({member.get(kind) for kind in KINDS}) == 1 for member in ensemble):
        return [(name, name) for name in ensemble[0]]
    return [("meaning" if name == first else name, name) for name in ensemble[0] if name not in others]


def profile_text(result: Fit, targets: Targets) -> str:
    """Return a fitted profile with its members as YAML."""
    import yaml

    own = result.profile.model_dump(exclude_defaults=True, exclude={"name", "about"})
    constants = own | ({"person": targets.person} if targets.person else {})
    content = {"about": f"Fitted to: {targets.source}.", **constants, "members": list(result.ensemble)}
    return str(yaml.safe_dump(content, sort_keys=False, width=120))
