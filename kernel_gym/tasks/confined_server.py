"""The program of a confined process: runs one problem file and answers requests about it.

    python -m kernel_gym.tasks.confined_server REQUESTS RESPONSES

The two arguments are file descriptors. The program writes one byte when it is ready, and then reads the text of the
problem file and requests. The confinement is set up before it starts.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from kernel_gym.confinement.python_process import READY
from kernel_gym.errors import KernelGymError
from kernel_gym.tasks import messages
from kernel_gym.tasks.exported_graph import decompositions
from kernel_gym.tasks.instance import ModuleInstance, instantiate
from kernel_gym.tasks.messages import Request, Response

if TYPE_CHECKING:
    import torch


def prepare() -> None:
    """Do once in a fork server what the first request would do in each process: torch imports parts of itself late."""
    for module in ("torch._dynamo", "torch.export._trace"):
        with suppress(ImportError):  # parts that another version may not have
            import_module(module)
    decompositions()


def main(requests: int, responses: int) -> None:
    """Answer requests until there are no more."""
    incoming, outgoing = os.fdopen(requests, "rb"), os.fdopen(responses, "wb")
    warnings.simplefilter("ignore")  # nobody reads them
    outgoing.write(READY)
    outgoing.flush()
    source = incoming.read(int(incoming.readline())).decode()
    while True:
        try:
            request, tensors = messages.receive_request(incoming)
        except EOFError:
            return
        messages.send_response(outgoing, *answer(source, request, tensors))


def answer(source: str, request: Request, tensors: list[torch.Tensor]) -> tuple[Response, list[torch.Tensor]]:
    """Return the response to one request and its tensors."""
    try:
        return _call(_instance(source, request), request, tensors)
    except KernelGymError as error:
        return Response(error=str(error)), []
    except MemoryError:
        return Response(error=f"the problem file needs too much memory at case {request.case.name!r}"), []
    except SystemExit as error:
        return Response(error=f"the problem file calls exit({error.code}) at case {request.case.name!r}"), []
    except BaseException as error:  # whatever a problem file raises is its fault
        reason = (str(error).strip().splitlines() or [""])[0]
        return Response(
            error=f"the problem file fails at case {request.case.name!r}: {type(error).__name__}: {reason}"
        ), []


def _instance(source: str, request: Request) -> ModuleInstance:
    if request.public is None:
        return ModuleInstance(source, request.digest, request.case, ())
    return instantiate(source, request.digest, request.public, request.case)


def _call(
    instance: ModuleInstance, request: Request, tensors: list[torch.Tensor]
) -> tuple[Response, list[torch.Tensor]]:
    import torch

    precision = getattr(torch, request.precision) if request.precision else None
    match request.method:
        case "signature":
            return Response(signature=instance.signature), []
        case "run_example":
            instance.run_example()
            return Response(), []
        case "graph" | "layers":
            return Response(graph=instance.graph(layers=request.method == "layers")), []
        case "fixed_inputs":
            fixed = instance.fixed_inputs()
            return Response(positions=list(fixed), drawn=sorted(instance.drawn_inputs())), list(fixed.values())
        case "statistics":
            statistics = instance.statistics(tensors)
            return Response(positions=list(statistics)), list(statistics.values())
        case "own_inputs":
            return Response(), list(instance.own_inputs(request.seed))
        case "work":
            numbers = Response(work=instance.work(), nonlinear=instance.nonlinear(), iterations=instance.iterations())
            return numbers, []
        case "evaluate":
            return Response(), list(instance.evaluate(tensors, precision))
        case "tried":
            inputs = tensors[: len(instance.signature.inputs)]
            outputs, counts = instance.tried(inputs, request.trial, precision, *tensors[len(inputs) :])
            return Response(counts=counts), list(outputs)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
