"""The trusted process: owns the NPU's memory, stream and clock for one kernel. Started by the device.

    python -m kernel_gym.hardware.ascend.worker SOCKET NPU
    python -m kernel_gym.hardware.ascend.worker --once FOLDER NPU

The second form runs one request from a folder, for use under a profiler.

It loads the kernel's device code with the trusted functions that start it; that library contains none of the kernel's
host code. It answers requests until the socket closes; after a fault it is replaced.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
import sys
from pathlib import Path
from typing import Any

from kernel_gym.hardware.ascend.calls import Calls, Npu
from kernel_gym.hardware.ascend.npu import TorchNpu
from kernel_gym.hardware.host.calls import Hang
from kernel_gym.hardware.host.device_process import receive_request, send_reply


def answer(npu: Npu, request: dict[str, Any], memory: memoryview) -> dict[str, Any]:
    """Make the calls of a request. Errors of the runtime are returned unchanged; the device explains them."""
    try:
        library = ctypes.CDLL(request["library"])
        return Calls(npu, library, request, memory).measure().reply()
    except Hang:
        return {"status": "timeout"}
    except (RuntimeError, OSError, AttributeError) as error:
        return {"status": "fault", "words": str(error)[:4000]}


def serve(connection: socket.socket, npu: Npu) -> None:
    """Answer requests until the client has closed the socket or a request fails."""
    while (message := receive_request(connection, 1)) is not None:
        request, (descriptor,) = message
        with mmap.mmap(descriptor, 0) as memory, memoryview(memory) as view:
            os.close(descriptor)
            reply = answer(npu, request, view)
        send_reply(connection, reply)
        if reply["status"] != "ok":
            return


def main() -> None:
    """Serve one client, or one request."""
    if sys.argv[1] == "--once":
        folder = Path(sys.argv[2])
        memory = bytearray((folder / "tensors").read_bytes())
        reply = answer(
            TorchNpu(int(sys.argv[3])), json.loads((folder / "request.json").read_text()), memoryview(memory)
        )
        sys.exit(0 if reply["status"] == "ok" else 1)
    connection = socket.socket(fileno=int(sys.argv[1]))
    try:
        npu = TorchNpu(int(sys.argv[2]))
    except (ImportError, RuntimeError) as error:
        send_reply(connection, {"status": "error", "message": f"the NPU cannot be used: {str(error)[:300]}"})
        return
    serve(connection, npu)
    os._exit(0)  # after a fault no orderly shutdown of the context is possible


if __name__ == "__main__":
    main()
