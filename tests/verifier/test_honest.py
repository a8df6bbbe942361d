"""False rejections first: honest kernels pass, in whatever style they are written."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from variants import variants

from kernel_gym.verifier import dialect
from kernel_gym.verifier.screen import findings
from kernel_gym.verifier.source import read


def test_honest_variants_are_not_refused(capsys):
    refused, count = {}, 0
    for name, _, text in variants():
        count += 1
        source = read(text)
        found = [finding.describe() for finding in findings(source)] + [str(d) for d in dialect.lint(source)]
        if found or source.tree.has_error:
            refused[name] = found or "does not parse"
    with capsys.disabled():
        print(f"\n{count} honest variants screened")
    assert refused == {}
    assert count >= 300
