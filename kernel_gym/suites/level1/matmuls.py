"""Matrix products."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

SQUARE = CaseSizes("n", public=(64,), hidden=((37,), (97,), (1,)), timing=(1024,))
PLAIN = CaseSizes(
    "m k n", public=(48, 64, 80), hidden=((37, 61, 29), (1, 127, 65), (130, 1, 33)), timing=(1024, 1024, 1024)
)
TRANSPOSED = CaseSizes(
    "m k n", public=(48, 64, 80), hidden=((37, 61, 29), (1, 127, 65), (130, 7, 33)), timing=(768, 1536, 1024)
)
MATRICES = {"a": "torch.randn(m, k)", "b": "torch.randn(k, n)"}
SQUARES = {"a": "torch.randn(n, n)", "b": "torch.randn(n, n)"}


def _product(
    number: int,
    name: str,
    description: str,
    sizes: CaseSizes = PLAIN,
    forward: str = "torch.matmul(a, b)",
    inputs: dict[str, str] = MATRICES,
    category: str = "matmul",
) -> TaskDefinition:
    return TaskDefinition(number, name, category, description, sizes, forward, inputs)


DEFINITIONS = (
    _product(1, "square_matrix_multiplication", "Product of two square matrices.", SQUARE, inputs=SQUARES),
    _product(2, "standard_matrix_multiplication", "Product of two matrices."),
    _product(
        3,
        "batched_matrix_multiplication",
        "Products of two batches of matrices.",
        CaseSizes(
            "batch m k n",
            public=(3, 24, 32, 40),
            hidden=((1, 17, 29, 13), (5, 1, 31, 9), (2, 33, 65, 1)),
            timing=(16, 256, 512, 256),
        ),
        "torch.bmm(a, b)",
        {"a": "torch.randn(batch, m, k)", "b": "torch.randn(batch, k, n)"},
    ),
    _product(
        4,
        "matrix_vector_multiplication",
        "Product of a matrix and a column.",
        CaseSizes("m k", public=(64, 128), hidden=((37, 257), (1, 1009), (130, 61)), timing=(2048, 8192)),
        inputs={"a": "torch.randn(m, k)", "b": "torch.randn(k, 1)"},
    ),
    _product(
        5,
        "matrix_scalar_multiplication",
        "Product of a matrix and a number.",
        CaseSizes("m n", public=(64, 128), hidden=((37, 61), (1, 1009), (130, 17)), timing=(4096, 2048)),
        "a * s",
        {"a": "torch.randn(m, n)", "s": "3.14"},
        category="math",
    ),
    _product(
        6,
        "matmul_with_large_k_dimension",
        "Product of matrices with a long inner dimension.",
        CaseSizes(
            "m k n", public=(16, 512, 16), hidden=((7, 1009, 5), (1, 771, 9), (17, 640, 3)), timing=(256, 16384, 256)
        ),
    ),
    _product(
        7,
        "matmul_with_small_k_dimension",
        "Product of matrices with a short inner dimension.",
        CaseSizes(
            "m k n", public=(96, 16, 96), hidden=((61, 7, 131), (1, 16, 257), (127, 1, 64)), timing=(2048, 64, 2048)
        ),
    ),
    _product(
        8,
        "matmul_with_irregular_shapes",
        "Product of matrices of uneven sizes.",
        CaseSizes(
            "m k n", public=(67, 53, 31), hidden=((41, 97, 19), (1, 59, 83), (103, 3, 47)), timing=(1031, 741, 1289)
        ),
    ),
    _product(
        9,
        "tall_skinny_matrix_multiplication",
        "Product of a tall and a wide matrix: a large result from a narrow pair.",
        CaseSizes("m n", public=(96, 16), hidden=((131, 5), (1, 33), (67, 24)), timing=(2048, 32)),
        inputs={"a": "torch.randn(m, n)", "b": "torch.randn(n, m)"},
    ),
    _product(
        10,
        "three_dim_tensor_matrix_multiplication",
        "A stack of matrices, each times the same matrix.",
        CaseSizes(
            "batch m k n",
            public=(3, 24, 32, 40),
            hidden=((1, 17, 29, 13), (5, 1, 31, 9), (2, 33, 65, 1)),
            timing=(8, 256, 512, 512),
        ),
        inputs={"a": "torch.randn(batch, m, k)", "b": "torch.randn(k, n)"},
    ),
    _product(
        11,
        "four_dim_tensor_matrix_multiplication",
        "A four-dimensional tensor times a matrix along its last dimension.",
        CaseSizes(
            "batch i j k n",
            public=(2, 6, 8, 32, 24),
            hidden=((1, 5, 7, 29, 13), (3, 1, 9, 17, 31), (2, 3, 5, 65, 1)),
            timing=(4, 16, 32, 256, 512),
        ),
        'torch.einsum("bijk,kn->bijn", a, b)',
        {"a": "torch.randn(batch, i, j, k)", "b": "torch.randn(k, n)"},
    ),
    _product(
        12,
        "matmul_with_diagonal_matrices",
        "A diagonal matrix, given by its diagonal, times a matrix.",
        CaseSizes("n m", public=(64, 96), hidden=((37, 61), (1, 257), (127, 9)), timing=(2048, 2048)),
        "torch.diag(a) @ b",
        {"a": "torch.randn(n)", "b": "torch.randn(n, m)"},
    ),
    _product(
        13,
        "matmul_for_symmetric_matrices",
        "Product of two square matrices, meant for symmetric ones; any must be multiplied right.",
        SQUARE,
        inputs=SQUARES,
    ),
    _product(
        14,
        "matmul_for_upper_triangular_matrices",
        "Upper triangle of the product of two square matrices.",
        SQUARE,
        "torch.triu(torch.matmul(a, b))",
        SQUARES,
    ),
    _product(
        15,
        "matmul_for_lower_triangular_matrices",
        "Lower triangle of the product of two square matrices.",
        SQUARE,
        "torch.tril(torch.matmul(a, b))",
        SQUARES,
    ),
    _product(
        16,
        "matmul_with_transposed_a",
        "Product with the first matrix transposed.",
        TRANSPOSED,
        "torch.matmul(a.T, b)",
        {"a": "torch.randn(k, m)", "b": "torch.randn(k, n)"},
    ),
    _product(
        17,
        "matmul_with_transposed_b",
        "Product with the second matrix transposed.",
        TRANSPOSED,
        "torch.matmul(a, b.T)",
        {"a": "torch.randn(m, k)", "b": "torch.randn(n, k)"},
    ),
    _product(
        18,
        "matmul_with_transposed_both",
        "Product with both matrices transposed.",
        TRANSPOSED,
        "torch.matmul(a.T, b.T)",
        {"a": "torch.randn(k, m)", "b": "torch.randn(n, k)"},
    ),
)
