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
// instead of: work
        static constexpr std::array SHIFTS{0u, 1u, 2u};
        if (n < BOUNDS.second * STEPS[n % 2] * TWICE[n % 2] << SHIFTS[n % 3]) AscendC::Relu(y, x, n);
