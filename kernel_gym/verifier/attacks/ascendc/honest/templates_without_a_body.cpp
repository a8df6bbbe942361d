// task: level1/relu
// cause: honest
// expect: feasible
// about: function templates that only their specialisations define, or that nothing calls
// at: outside
#include <type_traits>
template <typename T> __aicore__ inline void Go(const AscendC::LocalTensor<T> &y, const AscendC::LocalTensor<T> &, uint32_t);
template <> __aicore__ inline void Go<float>(
    const AscendC::LocalTensor<float> &y, const AscendC::LocalTensor<float> &x, uint32_t n)
{
    AscendC::Relu(y, x, n);
}
template <typename T> __aicore__ inline uint32_t Bytes(T) = delete;
template <> __aicore__ inline uint32_t Bytes<float>(float) { return sizeof(float); }
template <typename T> T Make();
template <typename... T> auto Sum(T &&...) -> decltype((Make<T>() + ...));
template <typename T> auto HasScale(int) -> decltype(T::kScale, std::true_type{});
template <typename T> std::false_type HasScale(...);
template <typename T> struct HasOffset {
    template <typename U> static std::true_type Test(decltype(U::kOffset) *);
    template <typename U> static std::false_type Test(...);
    static constexpr bool value = decltype(Test<T>(nullptr))::value;
};
struct Scaled {
    static constexpr int kScale = 1;
};
static_assert(decltype(HasScale<Scaled>(0))::value && !HasOffset<Scaled>::value);
static_assert(std::is_same_v<decltype(Sum(1, 2.0f)), float>);
// instead of: work
        if (Bytes(1.0f) == 4) Go(y, x, n);
