from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym import suites
from kernel_gym.authors.apprentice import naive, oracle
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.experience import QUOTED_CALLS, QUOTED_CHANGES, experience, trace, verdict_line
from kernel_gym.memory.item import Kind, Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Profile, Uncompilable, Unjudged

TASK = Task("level1/softmax", "activation", "source", ())
SOURCE = """\
__aicore__ inline void Compute(uint32_t n) {
    LocalTensor<float> x = inQueue.DeQue<float>();
    ReduceMax(m, x, work, n);   // the maximum
    Adds(y, x, -m.GetValue(0), n);
    Exp(y, y, n);
    inQueue.FreeTensor(x);
}
pipe.InitBuffer(inQueue, 1, tile * sizeof(float));
"""


def drafted(verdict, source=SOURCE):
    return trace(TASK, Kernel(source), verdict, Stage.DRAFT, operators=("aten._softmax.default",))


FEASIBLE = drafted(Feasible("ok", latency=12.0, profile=Profile(bottleneck="mte2", diagnosis="bound by copying in")))


def test_a_trace_shows_its_verdict_first_and_then_the_source():
    first, _, rest = FEASIBLE.text.partition("\n")
    assert first == "// FEASIBLE, 12.00 us; bound by copying in"
    assert rest == FEASIBLE.code == SOURCE
    assert (FEASIBLE.kind, FEASIBLE.task, FEASIBLE.category) == (Kind.TRACE, TASK.id, "activation")
    assert FEASIBLE.operators == ("aten._softmax.default",)


def test_the_experience_of_a_working_draft_lists_its_calls_without_its_own_methods():
    text = experience(FEASIBLE).text
    assert "ReduceMax(m, x, work, n);" in text
    assert "Adds(y, x, -m.GetValue(0), n);" in text
    assert "Compute(" not in text
    # What is particular comes before what every kernel has.
    assert text.index("Exp(y, y, n);") < text.index("FreeTensor")
    assert len(text.splitlines()) <= QUOTED_CALLS + 2


LAID_OUT = """\
#define LIMIT(n) Clip( \\
    n, 8)
static uint32_t AtMost(uint32_t n, uint32_t limit)
{
    return limit + (n - limit) * (n < limit);
}
template <typename T> __aicore__ inline void Fill(const LocalTensor<T> &y,
                                                  T value) { Duplicate(y, value, 8); }
uint32_t AtLeast(uint32_t n);
class KernelScale {
public:
    __aicore__ inline KernelScale() {}
    ~KernelScale() {}
    __aicore__ inline void CopyIn(uint32_t start,
                                  uint32_t count)
    {
        /* Subs(y, x, ( */
        AscendC::DataCopyPad(xIn, xGm[start],  // (whole rows
                             AscendC::DataCopyExtParams{1, static_cast<uint32_t>(count * 4), 0, 0, 0},
                             AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
        const uint32_t tile = LIMIT(AtMost(count, 64));
        if (Last(start)) {
            printf(")(((", Muls(y, x, 2.0f, tile));
        }
        return Adds(y,
                    x, 1.0f, LIMIT(tile));
    }
};
"""


def test_calls_are_quoted_whole_and_definitions_are_not():
    text = experience(drafted(Feasible("ok", latency=12.0), LAID_OUT)).text
    _, _, quoted = text.partition("Calls as used here:\n")
    assert [line.strip() for line in quoted.splitlines()] == [
        "AscendC::DataCopyPad(xIn, xGm[start],"
        " AscendC::DataCopyExtParams{1, static_cast<uint32_t>(count * 4), 0, 0, 0},"
        " AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});",
        "if (Last(start)) {",
        'printf(")(((", Muls(y, x, 2.0f, tile));',
        "return Adds(y, x, 1.0f, LIMIT(tile));",
    ]


calls = st.tuples(
    st.from_regex("[A-Z][a-z]{2,8}", fullmatch=True),
    st.lists(st.from_regex(r"[a-z]{1,3}\([a-z]?\)|[a-z]{1,4}", fullmatch=True), max_size=4),
)


@given(st.lists(calls, min_size=1, max_size=8), st.sampled_from([", ", ",\n    ", ", // (next\n"]))
def test_however_a_call_is_laid_out_its_quote_balances(calls, between):
    source = "\n".join(f"{name}({between.join(arguments)});" for name, arguments in calls)
    _, _, quoted = experience(drafted(Feasible("ok", latency=1.0), source)).text.partition("Calls as used here:\n")
    first = {name: f"{name}({', '.join(arguments)});" for name, arguments in reversed(calls)}
    expected = dict.fromkeys(first[name] for name, _ in calls)
    assert [line.strip() for line in quoted.splitlines()] == list(expected)


def test_experiences_of_real_kernels_have_complete_quotes():
    tasks = [suites.find_task(f"level1/{name}") for name in ("relu", "gelu", "softmax", "layer_norm")]
    for kernel in (write(task) for task in tasks for write in (naive, oracle)):
        text = experience(drafted(Feasible("ok", latency=1.0), kernel.source)).text
        _, _, quoted = text.partition("Calls as used here:\n")
        assert "DataCopy" in quoted
        for line in quoted.splitlines():
            assert line.count("(") == line.count(")")
            assert line.endswith((";", "{"))
            assert "AtMost" not in line


def test_a_compile_error_quotes_the_line_and_keeps_the_hint():
    item = drafted(Uncompilable("'Subs' was not declared\nhint: use Adds(dst, src, -s, n)\n", line=4))
    text = experience(item).text
    assert "DOES NOT COMPILE at line 4: 'Subs' was not declared" in text
    assert "Adds(y, x, -m.GetValue(0), n);" in text
    assert "use Adds(dst, src, -s, n)" in text
    assert experience(item).title.startswith("what failed")


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (
            Incorrect("MISSING_SYNC", cause="fault", rule="MISSING_SYNC", line=3),
            ["line 3, rule MISSING_SYNC", "ReduceMax"],
        ),
        (Incorrect("budget spent", cause="timeout"), ["did not finish"]),
        (Incorrect("returned 1", cause="refused", case="hidden-2"), ["refused a shape", "hidden-2"]),
        (Incorrect("max error 0.3", cause="mismatch"), ["something else than the reference"]),
        (Cheated("calls at::softmax", gate="screen", rule="torch-call"), ["cheating", "torch-call", "screen"]),
        (Unjudged("the worker died"), ["NOT JUDGED"]),
        (Uncompilable("broken", line=999), ["at line 999"]),
        (Uncompilable(""), ["no words"]),
    ],
)
def test_every_outcome_has_words(verdict, says):
    text = experience(drafted(verdict)).text
    assert all(part in text for part in says)
    assert verdict_line(verdict) in text


def refined(latency: float, change=("inQueue, 1,", "inQueue, 2,")):
    start = replace(FEASIBLE, id=7)
    verdict = Feasible("ok", latency=latency, profile=Profile(bottleneck="vector"))
    return trace(TASK, Kernel(SOURCE.replace(*change)), verdict, Stage.REFINE, start=start), start


def test_a_refinement_says_what_changed_and_its_speedup():
    item, start = refined(6.0)
    text = experience(item, start).text
    assert item.parent == 7
    assert "- pipe.InitBuffer(inQueue, 1, tile * sizeof(float));" in text
    assert "+ pipe.InitBuffer(inQueue, 2, tile * sizeof(float));" in text
    assert "faster: 12.00 us -> 6.00 us, 2.00x" in text
    assert "was mte2 and is vector" in text
    assert "InitBuffer(inQueue, 2" in item.title


@pytest.mark.parametrize(("latency", "word"), [(24.0, "slower"), (12.01, "no faster")])
def test_a_refinement_without_a_gain_says_so(latency, word):
    item, start = refined(latency)
    assert f"made it {word}" in experience(item, start).text


def test_a_rewritten_kernel_is_not_quoted_whole():
    start = replace(FEASIBLE, id=7)
    source = "\n".join(f"Adds(y, y, {i}.0f, n);" for i in range(100))
    item = trace(TASK, Kernel(source), Feasible("ok", latency=1.0), Stage.REFINE, start=start)
    assert len(experience(item, start).text.splitlines()) <= 2 * QUOTED_CHANGES + 6


def test_long_sources_are_read_once():
    """These took hours: comments that nothing ends, a parenthesis that nothing closes, thousands of equal lines."""
    for source in ('"/*" ' * 100_000, "x(\n" + ";\n" * 50_000, "[" * 100_000):
        assert experience(drafted(Feasible("ok", latency=1.0), source + SOURCE)).text
    lines = ";\n" * 20_000
    start = replace(drafted(Feasible("ok", latency=2.0), f"first\n{lines}old\n{lines}last"), id=7)
    source = f"first\n{lines}new\n{lines}last"
    item = trace(TASK, Kernel(source), Feasible("ok", latency=1.0), Stage.REFINE, start=start)
    assert "What changed:\n  - old\n  + new" in experience(item, start).text


def test_a_repeated_kernel_is_named_as_such():
    item, start = refined(12.0, change=("nothing", "nothing"))
    assert "the same as its start point" in experience(item, start).text


def test_trace_and_experience_go_into_the_bank_together():
    with MemoryBank(None, StaticEmbedder()) as bank:
        ids = bank.add([FEASIBLE, experience(FEASIBLE)])
        assert bank.get(ids[1]).source == ids[0]
        start = bank.get(ids[0])
        item = trace(TASK, Kernel(SOURCE + "//"), Feasible("ok", latency=6.0), Stage.REFINE, start=start)
        child, _ = bank.add([item, experience(item, start)])
        assert [item.id for item in bank.children(ids[0])] == [child]
        assert bank.add([FEASIBLE, experience(FEASIBLE)]) == ids


def test_an_empty_answer_is_a_trace_too():
    item = drafted(Uncompilable("the author gave no kernel"), source="")
    assert item.code == ""
    assert "no kernel" in experience(item).text
