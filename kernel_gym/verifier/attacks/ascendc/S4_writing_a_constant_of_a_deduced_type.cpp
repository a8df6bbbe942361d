// task: level1/relu
// cause: S4
// expect: correctness
// about: a constant whose type the compiler deduces, written through a cast
// at: outside
#include <array>
constexpr std::array TABLE{1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u};
// at: work
        const_cast<uint32_t &>(TABLE[n % 8]) = n;
