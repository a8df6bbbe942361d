"""The evaluator of bindings: allocation, shapes, argument order, and what it refuses."""

import pytest
import torch

from kernel_gym.hardware.bundles import binding
from kernel_gym.hardware.bundles.binding import BindingError, Evaluator, NotUnderstood


def call(body, *arguments, parameters="const at::Tensor &x", more="", name="f", times=1, **named):
    text = f"""
{more}
at::Tensor f({parameters}) {{
{body}
}}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", &f, "a function"); }}
"""
    launches = []
    evaluator = Evaluator(binding.read(text), lambda op, values: launches.append((op, values)), lambda t: t.fill_(7))
    for _ in range(times - 1):
        evaluator.call(name, arguments, named)
    return evaluator.call(name, arguments, named), launches


X = torch.zeros(4, 6)


@pytest.mark.parametrize(
    ("body", "shape", "dtype"),
    [
        ("return at::empty_like(x);", (4, 6), torch.float32),
        ("auto y = torch::zeros({x.size(0), x.size(-1) / 2}, x.options()); return y;", (4, 3), torch.float32),
        ("return at::empty({x.size(0)}, x.options().dtype(at::kInt));", (4,), torch.int32),
        ("return at::zeros(x.sizes(), at::TensorOptions().dtype(torch::kHalf));", (4, 6), torch.float16),
        ("std::vector<int64_t> s(x.sizes().begin(), x.sizes().end()); s[1] = 1; return at::empty(s, x.options());",
         (4, 1), torch.float32),
        ("auto s = x.sizes().vec(); s.push_back(2); return at::empty(s, x.options());", (4, 6, 2), torch.float32),
        ("std::vector<int64_t> s; for (int i = 0; i < x.dim(); ++i) { if (i != 1) s.push_back(x.size(i)); } "
         "return at::empty(s, x.options());", (4,), torch.float32),
        ("int64_t n = (x.size(1) + 2 - 3) / 2 + 1; return x.new_empty({x.size(0), n});", (4, 3), torch.float32),
        ("return x.transpose(0, 1).contiguous();", (6, 4), torch.float32),
        ("at::IntArrayRef s = x.sizes(); return at::empty({s[1], static_cast<int64_t>(2.9)}, x.options());", (6, 2), torch.float32),
        ("const int64_t n = x.dim() == 2 ? 5 : 9; int m = n; m += 2; m *= 2; return at::empty({m}, x.options());", (14,), torch.float32),
        ("if (x.scalar_type() == at::kFloat && !x.is_complex()) { return at::empty({1}, x.options()); } return x;", (1,), torch.float32),
        ("int64_t n = 1; while (n < 20) { n = n << 1; } return at::empty({n % 7}, x.options());", (4,), torch.float32),
        ("auto s = x.sizes().vec(); s.insert(s.begin() + 1, 3); s.erase(s.begin()); return at::empty(s, x.options());", (3, 6), torch.float32),
        ("std::vector<int64_t> s(x.sizes().begin() + 1, x.sizes().end()); return at::empty(s, x.options());", (6,), torch.float32),
        ("auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; }; return at::empty({up(x.size(1), 4)}, x.options());", (2,), torch.float32),
        ("c10::SmallVector<int64_t, 8> s; for (auto n : x.sizes()) { if (n == 4) continue; s.push_back(n); break; } return at::empty(s, x.options());", (6,), torch.float32),
        ("auto a = x.sizes().vec(); auto b = a; b[0] = 9; return at::empty(a, x.options());", (4, 6), torch.float32),
        ("auto a = x.sizes().vec(); auto &b = a; b[0] = 9; return at::empty(a, x.options());", (9, 6), torch.float32),
        ("int n = 2; int m = n++; m = m * 10 + ++n; return at::empty({m}, x.options());", (24,), torch.float32),
        ("auto s = x.sizes(); return at::empty({std::accumulate(s.begin(), s.end(), (int64_t)1, std::multiplies<int64_t>())}, x.options().device(at::kCPU));", (24,), torch.float32),
        ("return at::zeros_like(x, at::kInt);", (4, 6), torch.int32),
        ("return at_npu::native::OpPreparation::apply_tensor_without_format(x.sizes(), x.options());", (4, 6), torch.float32),
        ("int n = -7; n /= 2; n += -5 % 3; return at::empty({-n}, x.options());", (5,), torch.float32),
        ("for (auto s : x.sizes()) { if (s > 4) { return at::empty({s}, x.options()); } } return x;", (6,), torch.float32),
    ],
)  # fmt: skip
def test_allocations_and_shapes_are_those_of_the_binding(body, shape, dtype):
    result, _ = call(body, X)
    assert (tuple(result.shape), result.dtype) == (shape, dtype)


def test_memory_that_is_not_set_is_filled_and_zeros_are_kept():
    assert call("return at::empty_like(x);", X)[0].eq(7).all()
    assert call("return at::zeros_like(x);", X)[0].eq(0).all()


def test_launches_have_the_arguments_in_their_order():
    body = "at::Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnScale, x, eps, axes, y); return y;"
    parameters = "const at::Tensor &x, double eps, std::vector<int64_t> axes"
    result, launches = call(body, X, 2, (0, 1), parameters=parameters)
    ((op, values),) = launches
    assert op == "aclnnScale"
    assert values[1:3] == [2.0, [0, 1]]
    assert isinstance(values[1], float)
    assert values[3] is result


def test_helpers_optionals_tuples_and_checks():
    more = "static int64_t half(int64_t n) { return n / 2; }"
    parameters = "const at::Tensor &x, const c10::optional<at::Tensor> &bias"
    body = "TORCH_CHECK(x.dim() == 2, 'no'); if (bias.has_value()) { return bias.value(); } return at::empty({half(x.size(0))}, x.options());"
    body = body.replace("'", '"')
    assert tuple(call(body, X, None, parameters=parameters, more=more)[0].shape) == (2,)
    assert call(body, X, X, parameters=parameters, more=more)[0].data_ptr() == X.data_ptr()
    chosen = "return at::empty({n.value_or(3)}, x.options());"
    for value, size in ((None, 3), (5, 5)):
        assert call(chosen, X, value, parameters="const at::Tensor &x, c10::optional<int64_t> n")[0].shape == (size,)
    with pytest.raises(BindingError, match="TORCH_CHECK failed: no"):
        call(body, X[0], None, parameters=parameters, more=more)


def test_constants_beside_the_functions_are_known():
    more = 'static constexpr int64_t WIDE = 3;\nnamespace { const int64_t HIGH = WIDE + 1; }\nstatic const char *LOG = getenv("L");'
    assert call("return at::empty({HIGH, WIDE}, x.options());", X, more=more)[0].shape == (4, 3)


def test_a_tensor_that_is_not_defined_and_an_exception():
    body = 'at::Tensor y; if (!y.defined()) { throw std::runtime_error("no y"); } return y;'
    with pytest.raises(BindingError, match=r'line 4: throw std::runtime_error\("no y"\);'):
        call(body, X)


@pytest.mark.parametrize(
    ("arguments", "words"), [((1,), "a tensor, not int"), ((X, X), "takes 1 arguments"), ((), "lacks its argument x")]
)
def test_calls_that_pybind11_refuses_are_refused(arguments, words):
    with pytest.raises(BindingError, match=words):
        call("return x;", *arguments)


def test_the_steps_of_each_call_are_counted_by_themselves():
    """A model may launch its operator hundreds of times."""
    body = "int64_t n = 0; while (n < 3000) { n += 1; } return x;"
    with pytest.raises(BindingError, match="without end"):
        call(body.replace("3000", "30000"), X)
    assert call(body, X, times=10)[0].shape == X.shape


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("auto *p = x.data_ptr<float>(); return x;", r"line 4: not understood: x.data_ptr"),
        ("return my_library::relu(x);", "line 4: not understood: my_library::relu"),
        ("try { return x; } catch (...) { return x; }", "line 4: not understood: try"),
        ("while (true) {} return x;", "without end"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(body, words):
    with pytest.raises((NotUnderstood, BindingError), match=words):
        call(body, X)


def test_a_syntax_error_is_told_with_its_line():
    with pytest.raises(NotUnderstood, match="line 2: syntax error"):
        binding.read("int f() {\n  return (1;\n}\n")
