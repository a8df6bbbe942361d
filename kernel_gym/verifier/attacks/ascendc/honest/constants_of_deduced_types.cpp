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
// instead of: work
        static constexpr std::array SHIFTS{0u, 1u, 2u};
        if (relu_steps[n % 2] > 2 && NAMES[n % 2][0] > 'a')
        if (n < BOUNDS.second * STEPS[n % 2] * TWICE[n % 2] << SHIFTS[n % 3]) AscendC::Relu(y, x, n);
