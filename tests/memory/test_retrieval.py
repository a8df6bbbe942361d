"""Quality of retrieval: tasks of the suites as queries, labelled pages and traces as answers."""

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.memory import embedding
from kernel_gym.memory.api_pages import LANGUAGE
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.memory.seed import seed_items
from kernel_gym.verdict import Uncompilable

#: For a task, names whose pages its author should be shown.
LABELS = {
    "level1/relu": ["Relu"],
    "level1/leaky_relu": ["LeakyRelu"],
    "level1/sigmoid": ["Sigmoid"],
    "level1/tanh": ["Tanh"],
    "level1/softmax": ["SoftMax"],
    "level1/log_softmax": ["LogSoftMax"],
    "level1/swish": ["Swish"],
    "level1/gelu": ["Gelu"],
    "level1/hardtanh": ["Maxs"],
    "level1/batch_norm": ["BatchNorm"],
    "level1/layer_norm": ["LayerNorm"],
    "level1/rms_norm": ["RmsNorm"],
    "level1/group_norm": ["GroupNorm"],
    "level1/sum_reduction_over_a_dimension": ["ReduceSum"],
    "level1/mean_reduction_over_a_dimension": ["Mean"],
    "level1/max_reduction_over_a_dimension": ["ReduceMax"],
    "level1/min_reduction_over_a_dimension": ["ReduceMin"],
    "level1/argmax_over_a_dimension": ["ReduceMax"],
    "level1/argmin_over_a_dimension": ["ReduceMin"],
    "level1/cumsum": ["CumSum"],
    "level1/masked_cumsum": ["CumSum"],
    "level1/square_matrix_multiplication": ["Matmul"],
    "level1/batched_matrix_multiplication": ["IterateBatch"],
    "level1/matmul_with_transposed_b": ["SetBias"],
    "level1/matrix_scalar_multiplication": ["Muls"],
    "level1/min_gpt_new_gelu": ["Gelu", "Tanh"],
    "level1/scaled_dot_product_attention": ["SoftMax", "Matmul"],
    "level1/l1_norm": ["Abs", "ReduceSum"],
    "level1/l2_norm": ["Sqrt", "ReduceSum"],
    "level2/conv2d_relu_bias_add": ["Relu"],
    "level2/matmul_subtract_multiply_relu": ["Relu", "Matmul"],
    "level2/gemm_multiply_leakyrelu": ["LeakyRelu", "Matmul"],
    "level2/gemm_sigmoid_sum_log_sum_exp": ["Sigmoid", "Matmul"],
    "level2/matmul_swish_scaling": ["Swish", "Matmul"],
    "level2/conv3d_min_softmax": ["SoftMax"],
    "level2/matmul_gelu_softmax": ["Gelu", "SoftMax", "Matmul"],
    "level2/conv_transpose2d_subtract_tanh": ["Tanh"],
    "level2/gemm_batch_norm_gelu_group_norm_mean_relu": ["BatchNorm", "Gelu", "Relu"],
}
PAGES = [item for item in seed_items("ascendc") if item.kind is Kind.API and item.category != LANGUAGE]


class TokenMean:
    """A baseline: the plain mean of the same token vectors over a text."""

    dimension = 256

    def identity(self):
        return "token-mean"

    def embed(self, texts):
        table = embedding._token_table()
        means = [table.rows[tokens].mean(axis=0, dtype=np.float32) for tokens in table.tokens(texts)]
        return np.stack([mean / np.linalg.norm(mean) for mean in means])


def query(name: str) -> str:
    task = suites.find_task(name)
    return "\n".join((task.name, task.category, task.description, task.source))


def recall(embedder, k: int) -> float:
    """Return the share of the labelled pages among the `k` most similar, averaged over tasks."""
    with MemoryBank(None, embedder) as bank:
        bank.add(PAGES, attempt=False)
        shares = []
        for task, labels in LABELS.items():
            names = {name for result in bank.retrieve(query(task), k) for name in result.item.names}
            shares.append(np.mean([name in names for name in labels]))
    return float(np.mean(shares))


def test_pages_on_the_operator_are_among_the_nearest():
    ours = recall(StaticEmbedder(), 4)
    assert ours >= 0.75
    assert recall(StaticEmbedder(), 10) >= 0.85
    assert ours >= recall(TokenMean(), 4) + 0.2


@pytest.mark.parametrize(
    ("task", "relatives"),
    [
        ("level1/leaky_relu", {"level1/relu", "level1/elu", "level1/selu"}),
        ("level1/log_softmax", {"level1/softmax"}),
        ("level1/argmin_over_a_dimension", {"level1/argmax_over_a_dimension", "level1/min_reduction_over_a_dimension"}),
        ("level1/max_pooling_3d", {"level1/max_pooling_2d", "level1/max_pooling_1d"}),
        ("level2/matmul_gelu_softmax", {"level1/gelu", "level1/softmax", "level1/min_gpt_new_gelu"}),
    ],
)
def test_kernels_of_related_operators_are_among_the_nearest(task, relatives):
    """Kernels share nearly all of their text; only the headline and a few calls differ."""
    frame = "TPipe pipe; TQue<TPosition::VECIN, 1> inQueue; LocalTensor<float> x = inQueue.AllocTensor<float>();\n" * 20
    with MemoryBank(None, StaticEmbedder()) as bank:
        for other in suites.load_suite("level1"):
            if other.id != task:
                text = f"// FEASIBLE, 12.00 us\n{frame}// {other.name}"
                bank.add([MemoryItem(Kind.TRACE, other.id, text, "", Uncompilable(""), other.id, other.category)])
        tasks = [result.item.task for result in bank.retrieve(query(task), 8)]
    assert relatives & set(tasks)
