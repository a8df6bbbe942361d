"""The program of a fork server: it imports the libraries once, which takes seconds, and forks confined processes.

    python -P -m kernel_gym.confinement.fork_server CONNECTION LIBRARY

The arguments are the descriptor of a socket and the shared library of the confinement. The server itself runs no code
of others: a forked process confines itself before it reads the first byte of such code. The server answers

- a request with a module, and three descriptors: the module's `prepare` is called once in the server, then a forked
  process runs its `main` with the first two descriptors, and prints to the third; the answer is the process's number;
- a request with the number of a process: the answer is the exit status of that process, when it has ended.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

#: Bytes of a request.
MOST_BYTES = 1 << 16
#: Exit status of a process that could not be confined.
NOT_CONFINED = 125
_PR_SET_PDEATHSIG = 1

#: Confines this process with the words of `src/confine.h`; returns what went wrong.
Confine = Callable[[Sequence[str]], str]


def main(connection: int, library: str) -> None:
    """Answer requests until the other side has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    confine = load_confine(library)
    server = socket.socket(fileno=connection)
    while True:
        text, descriptors, _, _ = socket.recv_fds(server, MOST_BYTES, 3)
        if not text:
            return
        request = json.loads(text)
        if "process" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["process"], 0)[1])
        else:
            answer = _fork(server, confine, request, descriptors)
        server.send(str(answer).encode())


def load_confine(library: str) -> Confine:
    """Return the function of a shared library that confines this process."""
    function = ctypes.CDLL(library).confine
    function.restype = ctypes.c_char_p

    def confine(words: Sequence[str]) -> str:
        texts = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        return (function(len(words), texts, ctypes.byref(ctypes.c_int())) or b"").decode()

    return confine


def _fork(server: socket.socket, confine: Confine, request: dict[str, Any], descriptors: list[int]) -> int:
    if request["module"] not in sys.modules:
        importlib.import_module(request["module"]).prepare()
        gc.collect()
        gc.freeze()  # the collector of a forked process would copy the pages of all these objects
    parent = os.getpid()
    process = os.fork()
    if process == 0:
        server.close()
        _run(parent, confine, request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return process


def _run(parent: int, confine: Confine, request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run a module in this forked process, confined."""
    status = NOT_CONFINED
    try:
        incoming, outgoing, errors = descriptors
        os.setsid()
        for stream in (1, 2):
            os.dup2(errors, stream)
        _close_all_but({0, 1, 2, incoming, outgoing})
        _settle(request["folder"], request["environment"], request["threads"])
        why = confine(request["confinement"])
        if why or os.getppid() != parent:
            sys.exit(f"confine: {why or 'the parent is gone'}")
        status = 1
        sys.modules[request["module"]].main(incoming, outgoing)
        status = 0
    except SystemExit as exit:
        print(exit.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one of the listing is closed
            if int(name) not in kept:
                os.close(int(name))


def _settle(folder: str, environment: dict[str, str], threads: int) -> None:
    """Take over a folder, variables and a number of threads, as a process that is started has them."""
    import torch

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    torch.set_num_threads(threads)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
