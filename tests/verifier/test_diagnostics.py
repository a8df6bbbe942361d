"""What the author is told about an error."""

import csv
from pathlib import Path

import pytest

from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.host.compiler import MESSAGE_LIMIT, tidy
from kernel_gym.verifier.diagnostics import explain, hint_for, scrub

SOURCE = "line one\n    AscendC::Subs(x, x, m, n);\nline three\n"


def test_the_first_real_error_with_the_line_and_a_hint():
    diagnostics = (
        Diagnostic("In file included from /opt/x/kernel_operator.h"),
        Diagnostic("‘Subs’ is not a member of ‘AscendC’", 2),
        Diagnostic("compilation terminated", 3),
    )
    feedback, error = explain(diagnostics, {"": SOURCE})
    assert error.line == 2
    assert feedback.splitlines()[0] == "line 2: 'Subs' is not a member of 'AscendC' | AscendC::Subs(x, x, m, n);"
    assert "Adds" in feedback.splitlines()[1]


def test_paths_noise_and_length_are_scrubbed():
    text = scrub(
        "error in /home/somebody/.cache/x/kernel_operator.h:12: \x1b[31mbad\x1b[0m [with T = int; U = float] "
        + "y" * 900
    )
    assert "somebody" not in text
    assert "kernel_operator.h" in text
    assert "\x1b" not in text
    assert "[with" not in text
    assert len(text) <= 280


def test_a_line_outside_the_source_is_not_quoted():
    feedback, _ = explain((Diagnostic("bad", 99),), {"": SOURCE})
    assert feedback == "bad"


#: Spellings of the compiler for the mistakes that were counted on real submissions.
MESSAGES = {
    "no_member_in_namespace": "'{name}' is not a member of '{scope}'",
    "no_matching_function": "no matching function for call to '{name}(AscendC::LocalTensor<float>&, int)'",
    "undeclared_identifier": "'{name}' was not declared in this scope",
    "no_member_in_class": "'class {scope}' has no member named '{name}'",
    "static_assert": "static assertion failed: {name}",
}
KNOWN = Path(__file__).parent / "known_mistakes.csv"


@pytest.mark.parametrize("row", list(csv.DictReader(KNOWN.open())), ids=lambda row: row["item"])
def test_known_mistakes_have_a_hint(row):
    scope, _, name = (
        row["item"].replace("::", ".").rpartition(".") if row["kind"] != "static_assert" else ("", "", row["item"])
    )
    message = MESSAGES[row["kind"]].format(name=name, scope=scope.replace(".", "::"))
    assert hint_for(message), message


def test_a_long_line_of_the_compiler_is_read_once():
    """A static assertion may print a million characters."""
    assert len(tidy("static assertion failed: " + "/a" * 500_000)) <= MESSAGE_LIMIT
