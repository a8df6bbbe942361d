"""Reading bundles: six strings, read without running the file."""

import ast
import hashlib
import sys

import pytest

from kernel_gym.errors import BundleError
from kernel_gym.hardware.bundles.strings import strings
from kernel_gym.hardware.bundles.text import read, snake_case
from kernel_gym.kernel import BUNDLE_TEXTS, Kernel


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
        (((('model_src = """', 'model_src = 5 + """'),)), "model_src is computed: write it out"),
        (((('model_src = """', 'model_src = """ """'),)), "not Python"),
        ((('"op": "ReluCustom",', ""),), "names no operator"),
        ((('"language": "cpp",', '"language": ,'),), "project JSON: not JSON"),
    ],
    ids=["missing", "computed", "syntax", "no operator", "no JSON"],
)
def test_a_file_that_is_no_bundle_is_one_clear_line(sample, changes, words):
    with pytest.raises(BundleError) as error:
        read(sample("relu", *changes))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_the_line_of_a_syntax_error_is_told(sample):
    text = sample("relu")
    with pytest.raises(BundleError) as error:
        read(text + "x = = 1\n")
    assert error.value.line == text.count("\n") + 1


def test_strings_that_are_put_together_have_the_length_of_a_file(sample):
    doubled = "text = '// many'\n" + "text = text + text\n" * 16
    with pytest.raises(BundleError, match="at most 1,000,000 characters together"):
        read(
            sample(
                "relu",
                ("kernel_src = ", doubled + "kernel_src = text + text + "),
                ("model_src = ", "model_src = text + "),
            )
        )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads formatted strings once")
def test_formatted_strings_that_python_reads_again_and_again_are_refused(sample):
    with pytest.raises(BundleError, match="formatted strings are too long"):
        read(sample("relu") + 'z = f"' + "{1}" * 60_000 + '"\n')


@pytest.mark.parametrize(
    "text",
    [
        "N = 4 * 8\nkernel_src = f'// {N}' + '{}'",
        "kernel_src: str = '// 3' + '2{}'",
        "kernel_src = '// N'\nkernel_src = kernel_src.replace('N', '32')\nkernel_src += '{}'",
        "import textwrap\nkernel_src = textwrap.dedent('\\n  // 32{}').strip()",
        "import json\nkernel_src = other = '// ' + json.dumps(32, indent=2) + json.dumps({})",
        "kernel_src = ' '.join(['//', '32{}\\n']).rstrip('\\n')",
        "def kernel():\n    kernel_src = '-'\n\nkernel_src = '// 32{}'",
    ],
)
def test_strings_that_are_put_together_are_read_as_python_computes_them(text):
    ran: dict[str, str] = {}
    exec(text, ran)
    assert (
        strings(ast.parse(text), ["kernel_src"], 100) == {"kernel_src": "// 32{}"} == {"kernel_src": ran["kernel_src"]}
    )


@pytest.mark.parametrize(
    "text",
    [
        "from kernel_gym.authors.apprentice import oracle\nkernel_src = oracle('level1/softmax').source",
        "kernel_src = open('/etc/passwd').read()",
        "kernel_src = ''\nfor c in 'ab':\n    kernel_src = kernel_src + c",
        "kernel_src = 'a'\nif True:\n    kernel_src = 'b'",
        "kernel_src, other = 'a', 'b'",
        "kernel_src = 'a'\nfrom other import kernel_src",
        "kernel_src = 'a'\ndel kernel_src",
        "kernel_src = 'a'\nclass kernel_src: pass",
        "kernel_src = f'{5:1000000000}'",
        "kernel_src = 'a' * 1000",
        "kernel_src = json.dumps([1], indent=1000000000)",
        "kernel_src = ''.join('ab')",
        "x = 'a' + 'a'\n" + "x = x + x\n" * 8 + "kernel_src = x.join(['', '', '', '', ''])",
        "x = 'a' + 'a'\n" + "x = x + x\n" * 50 + "kernel_src = x",
        "x = 'a'\n" + "x = x.replace('a', 'aa')\n" * 50 + "kernel_src = x",
        "kernel_src = 1 // 0",
        "kernel_src = ['a'].replace('a', 'b')",
        "kernel_src = json.dumps([1]) + {'a': 1}.strip()",
        "kernel_src = 'a'.replace(1, 2)",
        "x = ['a']\nkernel_src = json.dumps([x, x])",
        "kernel_src = json.dumps({1: 2})",
        "kernel_src = f'{[1]}'",
        "kernel_src = " + "+".join(["'a'"] * 900),
    ],
)
def test_strings_that_are_computed_otherwise_are_refused_at_their_line(text):
    with pytest.raises(BundleError, match="kernel_src is computed: write it out as a string") as error:
        strings(ast.parse(text), ["kernel_src"], 800)
    assert error.value.line in (text.count("\n") + 1, text.count("\n"))


def test_many_strings_cost_no_more_than_their_budget():
    text = f"x = {'a' * 1000!r}\n" + "y = x + ''\n" * 1000 + "kernel_src = 'a'"
    with pytest.raises(BundleError):
        strings(ast.parse(text), ["kernel_src"], 1000)


def test_a_kernel_s_form_is_told_by_its_text(sample):
    assert Kernel(sample("relu")).form == "bundle"
    assert Kernel("int kernel_src;\n").form == Kernel("").form == "file"
    bundle = Kernel(sample("relu"))
    files = [Kernel(before + sample("relu"), form="file") for before in ("", "bundle\0", " bundle\0")]
    assert bundle.digest not in {file.digest for file in files}


def test_the_digest_of_a_kernel_in_one_file_is_as_before():
    assert Kernel("int x;").digest == hashlib.sha256(b"ascendc\0int x;").hexdigest()


@pytest.mark.parametrize(
    ("name", "spelled"), [("ReluCustom", "relu_custom"), ("Conv2dReLUCustom", "conv2d_re_lu_custom"), ("ADDX", "addx")]
)
def test_operators_are_spelled_in_small_letters(name, spelled):
    assert snake_case(name) == spelled
