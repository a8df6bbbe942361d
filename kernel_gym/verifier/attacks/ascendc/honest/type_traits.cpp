// task: level1/relu
// cause: honest
// expect: feasible
// about: traits of types
// at: outside
#include <tuple>
#include <type_traits>
template <typename T> using Plain = std::remove_const_t<std::remove_pointer_t<T>>;
static_assert(std::is_pointer_v<const float *> && std::is_same_v<Plain<const float *>, float>);
static_assert(std::conjunction_v<std::is_arithmetic<float>, std::is_trivially_copyable<float>>);
static_assert(std::tuple_size_v<std::tuple<int, float>> == 2);
template <uint32_t... places> __aicore__ inline uint32_t Sum(std::integer_sequence<uint32_t, places...>)
{
    return (places + ... + 0);
}
// instead of: work
        if (Sum(std::make_integer_sequence<uint32_t, 4>{}) == 6) AscendC::Relu(y, x, n);
