"""Reading bundles: six strings, read without running the file where they are written out."""

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from kernel_gym.errors import BundleError
from kernel_gym.hardware.bundles import host, model_process
from kernel_gym.hardware.bundles.runner import BundleRunner
from kernel_gym.hardware.bundles.text import _read, read, snake_case
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.kernel import BUNDLE_TEXTS, Kernel
from kernel_gym.verifier.submission import read_submission


def test_the_six_strings_are_read_without_running_the_file(sample):
    bundle = read(sample("relu") + "\nraise SystemExit('never run')\n")
    assert set(bundle.texts) == set(BUNDLE_TEXTS)
    assert (bundle.operator, bundle.function) == ("ReluCustom", "relu_custom")
    assert "relu_custom(GM_ADDR x" in bundle["kernel_src"]


def test_texts_of_a_bundle_are_readable_whatever_their_literals_hold(sample):
    source = sample("relu").replace('kernel_src = """', 'kernel_src = """// \\ud800 \\r asm\n', 1)
    assert read(source)["kernel_src"].startswith("// ? \n asm\n")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((("kernel_src = ", "other_src = "),), "lacks kernel_src"),
        (((('model_src = """', 'model_src = 5 + """'),)), "does not run"),
        (((('model_src = """', 'model_src = """ """'),)), "not Python"),
        ((('"op": "ReluCustom",', ""),), "names no operator"),
        ((('"language": "cpp",', '"language": ,'),), "project JSON: not JSON"),
    ],
    ids=["missing", "raises", "syntax", "no operator", "no JSON"],
)
def test_a_file_that_is_no_bundle_is_one_clear_line(sample, monkeypatch, changes, words):
    def refuse(source):
        raise BundleError("the bundle does not run: TypeError: unsupported operand")

    monkeypatch.setattr(model_process, "compute_texts", refuse)
    with pytest.raises(BundleError) as error:
        read(sample("relu", *changes))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_the_line_of_a_syntax_error_is_told(sample):
    text = sample("relu")
    with pytest.raises(BundleError) as error:
        read(text + "x = = 1\n")
    assert error.value.line == text.count("\n") + 1


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads formatted strings once")
def test_formatted_strings_that_python_reads_again_and_again_are_refused(sample):
    with pytest.raises(BundleError, match="formatted strings are too long"):
        read(sample("relu") + 'z = f"' + "{1}" * 60_000 + '"\n')


@pytest.mark.slow
def test_a_file_that_computes_a_string_runs_confined(sample, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    bundle = read(sample("relu", ("kernel_src = ", "NAME = 'relu'\nkernel_src = f'// {NAME}' + ")))
    assert bundle["kernel_src"].startswith("// relu\n")
    with pytest.raises(BundleError, match="does not run: PermissionError"):
        read(sample("relu", ("kernel_src = ", f"kernel_src = open({str(secret)!r}).read() + ")))


def test_what_is_screened_is_what_is_built(sample, monkeypatch, tmp_path):
    """A file that computes other texts each time: two threads that read it at once could screen one and build another."""
    texts = dict(read(sample("relu")).texts)
    runs, built = count(), []
    monkeypatch.setattr(model_process, "compute_texts", lambda _: texts | {"kernel_src": f"// {next(runs)}"})
    monkeypatch.setattr(host, "build", lambda bundle, _: built.append(bundle) or (Diagnostic("no host code"),))
    kernel = Kernel(sample("relu", ("kernel_src = ", "kernel_src = '' + ")))
    with ThreadPoolExecutor(4) as pool:
        bundles = list(pool.map(lambda _: read_submission(kernel).bundle, range(8)))
    _read.cache_clear()  # as if other bundles had been read meanwhile
    BundleRunner(None, None, lambda _: tmp_path, (), 0, None).build(kernel, None)
    assert len({bundle["kernel_src"] for bundle in [*bundles, *built]}) == 1
    assert read(kernel.source)["kernel_src"] != bundles[0]["kernel_src"]


def test_a_kernel_s_form_is_told_by_its_text(sample):
    assert Kernel(sample("relu")).form == "bundle"
    assert Kernel("int kernel_src;\n").form == Kernel("").form == "file"
    assert Kernel(sample("relu"), form="file").digest != Kernel(sample("relu")).digest


def test_the_digest_of_a_kernel_in_one_file_is_as_before():
    assert Kernel("int x;").digest == hashlib.sha256(b"ascendc\0int x;").hexdigest()


@pytest.mark.parametrize(
    ("name", "spelled"), [("ReluCustom", "relu_custom"), ("Conv2dReLUCustom", "conv2d_re_lu_custom"), ("ADDX", "addx")]
)
def test_operators_are_spelled_in_small_letters(name, spelled):
    assert snake_case(name) == spelled
