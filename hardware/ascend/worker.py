"""The trusted process: owns the NPU's memory, stream and clock for one candidate. Started by the device.

    python -m kernel_gym.hardware.ascend.worker SOCKET NPU
    python -m kernel_gym.hardware.ascend.worker --once FOLDER NPU

The second form carries out one request that lies in a folder, so that a profiler can watch.

It loads the candidate's device code with our own functions that start it; nothing of the candidate's host code is in
that library. It answers requests until the socket closes; after a fault it is replaced.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from kernel_gym.hardware.ascend.calls import Calls, Hang, Npu
from kernel_gym.hardware.ascend.npu import TorchNpu


def answer(npu: Npu, request: dict[str, Any], memory: memoryview) -> dict[str, Any]:
    """Carry out a request. The runtime's words on an error go back as they are; the device knows what they mean."""
    try:
        library = ctypes.CDLL(request["library"])
        return Calls(npu, library, request, memory).run().reply()
    except Hang:
        return {"status": "timeout"}
    except (RuntimeError, OSError, AttributeError) as error:
        return {"status": "fault", "words": str(error)[:4000]}


def serve(connection: socket.socket, npu: Npu) -> None:
    """Answer until the client is gone, or until a request did not come to a good end."""
    while (message := _receive(connection)) is not None:
        request, descriptor = message
        with mmap.mmap(descriptor, 0) as memory, memoryview(memory) as view:
            os.close(descriptor)
            reply = answer(npu, request, view)
        data = json.dumps(reply).encode()
        connection.sendall(struct.pack("<I", len(data)) + data)
        if reply["status"] != "ok":
            return


def _receive(connection: socket.socket) -> tuple[dict[str, Any], int] | None:
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 1)
    if len(head) < 4:
        return None
    (length,) = struct.unpack("<I", head)
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(length - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return json.loads(data), descriptors[0]


def main() -> None:
    """Serve one client, or carry out one request."""
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
        data = json.dumps({"status": "error", "message": f"the NPU cannot be used: {str(error)[:300]}"}).encode()
        connection.sendall(struct.pack("<I", len(data)) + data)
        return
    serve(connection, npu)
    os._exit(0)  # after a fault nothing of the context is worth an orderly end


if __name__ == "__main__":
    main()
