"""Every module that comes from a paper agrees with a second formulation of it in float64."""

import ast

import pytest
import torch
from formulations import ATTENTION, MHC, PARTS

from kernel_gym.suites import find_task, load_suite
from kernel_gym.tasks.size_constants import with_sizes

SUITES = {"attention": ATTENTION, "attention_parts": PARTS, "mhc": MHC}
FORMULATIONS = {
    f"{suite}/{name}": function for suite, functions in SUITES.items() for name, function in functions.items()
}


def built(name: str) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """The module of a task at its first hidden sizes, with random weights, and its inputs."""
    task = find_task(name)
    namespace: dict[str, object] = {}
    tree: ast.Module = with_sizes(task.source, dict(task.hidden[0].sizes))
    exec(compile(tree, name, "exec"), namespace)
    torch.manual_seed(0)
    model = namespace["Model"](*namespace["get_init_inputs"]()).eval()
    for key, parameter in [*model.named_parameters(), *model.named_buffers()]:
        if key.endswith("running_var"):
            parameter.data.uniform_(0.5, 1.5)
        elif key.endswith("running_mean") or isinstance(parameter, torch.nn.Parameter):
            parameter.data.add_(torch.randn(parameter.shape, dtype=torch.float64).to(parameter.dtype) * 0.1)
    return model, namespace["get_inputs"]()


def wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_module_agrees_with_its_second_formulation(name: str):
    model, inputs = built(name)
    model = model.double()
    formulation = FORMULATIONS[name]
    with torch.no_grad():
        inputs = [wide(tensor) for tensor in inputs]
        outputs, expected = model(*inputs), formulation(model, *inputs)
    outputs, expected = ([y] if isinstance(y, torch.Tensor) else list(y) for y in (outputs, expected))
    assert len(outputs) == len(expected)
    for output, other in zip(outputs, expected, strict=True):
        assert output.dtype == other.dtype
        # Tables that a module keeps in float32 (cosines, distances) limit the agreement to about 1e-5.
        torch.testing.assert_close(output, other, rtol=1e-5, atol=1e-5)


def test_every_module_has_a_second_formulation():
    assert set(FORMULATIONS) == {task.id for suite in SUITES for task in load_suite(suite)}
