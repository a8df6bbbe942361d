import re
from importlib.resources import files

import pytest
import yaml

from kernel_gym.memory.api_pages import BASICS, LANGUAGE, NAMED, SIMILAR, select_pages
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind
from kernel_gym.memory.seed import BOTTLENECKS, seed_items

ITEMS = seed_items("ascendc")
PAGES = [item for item in ITEMS if item.kind is Kind.API]
PRACTICES = [item for item in ITEMS if item.kind is Kind.PRACTICE]

# The names that kernels use most and that exist in a single file (macros of operator projects do not).
MOST_USED = """
    GlobalTensor SetGlobalBuffer LocalTensor DataCopy TPipe GetBlockIdx GM_ADDR InitBuffer TPosition AllocTensor TQue
    FreeTensor VECIN VECOUT EnQue DeQue GetBlockNum VECCALC Add Muls GetValue Adds PipeBarrier SetValue TBuf Mul Get
    QuePosition HardEvent SetFlag WaitFlag Duplicate printf Exp Alloc LocalMemAllocator Hardware Mins CubeFormat V_MTE3
    REGIST_MATMUL_OBJ GetSysWorkSpacePtr MTE2_V SetTensorA SetTensorB Matmul Maxs End IterateAll Tanh Div Sub SetBias
    Log SetOrgShape Abs ReduceSum SetTail DataCopyPad Min LoadData Sigmoid Sqrt Relu Mmad Fixpipe Cast MmadParams
    FixpipeParamsV220 Nd2NzParams Max DataCopyPadExtParams DataCopyExtParams LoadData2DParams GetTPipePtr DataCopyParams
    FetchEventID Gelu Select LeakyRelu ReinterpretCast V_MTE2 GetSize Ln SetSingleShape IterateBatch Iterate
    CrossCoreSetFlag CrossCoreWaitFlag ReduceMax SetAtomicAdd GetTensorC MTE3_V Axpy Reciprocal SyncAll Gather
    SetMaskCount SetVectorMask Compare CumSum Erf SoftMax Rsqrt Swish Copy WholeReduceSum Silu ShiftLeft TQueBind
    BinaryRepeatParams Transpose GetSubBlockIdx Sum ClampMin ClampMax LogSoftMax AddRelu Mean ReduceMin GetWithOffset
""".split()  # noqa: SIM905


def test_there_are_enough_pages_and_practices():
    assert len(PAGES) >= 60
    assert len([item for item in PRACTICES if item.bottlenecks]) >= 25
    assert len([item for item in PRACTICES if not item.bottlenecks]) >= 10
    assert len({item.text for item in ITEMS}) == len({item.title for item in ITEMS}) == len(ITEMS)


def test_the_most_used_names_have_a_page():
    documented = {name for page in PAGES for name in page.names}
    assert [name for name in MOST_USED if name not in documented] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_page_shows_its_names_in_code(page):
    assert "Example:" in page.text
    code = page.text.partition("Example:\n")[2].partition("\nCommon mistake")[0]
    before = page.text.partition("Example:\n")[0]
    missing = [name for name in page.names if not re.search(rf"\b{name}\b", code + before)]
    assert missing == []
    assert "Common mistake:" in page.text
    assert len(page.text) < 2600


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.title)
def test_wrong_spellings_never_stand_as_calls(item):
    wrong = r"\b(Subs|Divs|Neg|Fill|SetZero|ReduceAdd|Maximum|Minimum|Clamp|Sel|expf|logf|sqrtf|tanhf|Cumsum)\("
    assert re.search(wrong, item.text) is None
    assert not re.search(r"\b(Adds|Muls|Maxs|Mins)\(\w+, \w+, -?\d+, ", item.text)
    assert not re.search(r"InitBuffer\(\w*Buf, \d+, ", item.text)
    assert not re.search(r"\bReduce(Sum|Max|Min)\(\w+, \w+, \w+\)", item.text)


def test_no_text_shows_a_spelling_that_the_apprentice_gets_wrong():
    """The apprentice reads seed knowledge by pattern, so a warning must not contain the mistake."""
    idioms = files("kernel_gym.authors") / "apprentice" / "ascendc" / "idioms"
    shown = [
        (idiom["id"], wrong["name"], item.title)
        for file in idioms.iterdir()
        if file.name.endswith(".yaml")
        for idiom in yaml.safe_load(file.read_text())
        for wrong in idiom["wrong"]
        for item in ITEMS
        if any(re.search(pattern, item.text) for pattern in wrong.get("seen", ()))
    ]
    assert shown == []


def test_practices_are_tagged_with_known_bottlenecks():
    used = {tag for item in PRACTICES for tag in item.bottlenecks}
    assert used == BOTTLENECKS["ascendc"]


def test_other_languages_have_no_seed():
    assert seed_items("klingon") == ()


@pytest.fixture(scope="module")
def bank():
    with MemoryBank(None, StaticEmbedder()) as bank:
        bank.add(ITEMS, attempt=False)
        yield bank


def test_api_pages_are_basics_then_named_then_similar(bank):
    code = "DataCopyPad(x, g, s, p); Tanh(y, x, n); WholeReduceSum(s, y, 64, 8, 1, 1, 8); Unknown(x);"
    pages = bank.api_pages("torch.sigmoid of a tensor", code)
    basics, rest = pages[:BASICS], pages[BASICS:]
    assert [page.category for page in basics] == [LANGUAGE] * BASICS
    titles = [page.title for page in rest]
    assert {"Tanh", "WholeReduceSum, WholeReduceMax, one result a repeat"} <= set(titles[:NAMED])
    assert "Sigmoid" in titles
    assert len(pages) == len(set(pages)) <= BASICS + NAMED + SIMILAR
    assert pages == bank.api_pages("torch.sigmoid of a tensor", code)
    assert all(page.kind is Kind.API for page in pages)


def test_without_code_only_basics_and_similar_pages(bank):
    assert len(bank.api_pages("softmax", "")) == BASICS + SIMILAR


def test_names_are_whole_words():
    pages = [item for item in PAGES if "Exp" in item.names or "Add" in item.names]
    assert not [page for page in select_pages(pages, "ExpLike(x); AddAll(y);")[BASICS:] if "Ln" in page.names][SIMILAR:]
    named = select_pages(PAGES, "Ln(y, x, n);")
    assert any("Ln" in page.names for page in named)


def test_an_unknown_language_gets_no_pages(bank):
    assert bank.api_pages("softmax", "Exp(y, x, n);", language="cuda") == ()
