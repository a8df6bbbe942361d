// task: level1/relu
// cause: honest
// expect: feasible
// about: constants whose types the compiler deduces
// at: outside
#include <array>
constexpr std::array STEPS{1u, 2u};
inline constexpr std::array TWICE{2u, 4u};
template <typename T> struct Pair { T first, second; };
template <typename T> Pair(T, T) -> Pair<T>;
static constexpr Pair BOUNDS{0u, 100000u};
inline constexpr std::array relu_steps{3u, 5u};
constexpr std::array NAMES{"even", "odd"};
constexpr std::array NONE{0u, 0u};
template <class... F> struct Overloaded : F... { using F::operator()...; };
template <class... F> Overloaded(F...) -> Overloaded<F...>;
constexpr Overloaded COUNT{[](float) { return 1u; }, [](uint32_t n) { return n; }};
// instead of: work
        static constexpr std::array SHIFTS{0u, 1u, 2u};
        if (COUNT(n) + NONE[n % 2] > 0 && COUNT(1.0f) == 1 && relu_steps[n % 2] > 2 && NAMES[n % 2][0] > 'a')
        if (n < BOUNDS.second * STEPS[n % 2] * TWICE[n % 2] << SHIFTS[n % 3]) AscendC::Relu(y, x, n);
