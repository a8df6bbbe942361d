// task: level1/relu
// cause: honest
// expect: feasible
// about: what the standard library has for kernels
// at: outside
#include <algorithm>
#include <type_traits>
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> __aicore__ inline T Least(T a, T b) { return std::min(a, b); }
// at: host
    total = std::max<int64_t>(total, Least<int64_t>(total, 1));
