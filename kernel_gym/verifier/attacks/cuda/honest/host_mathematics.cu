// task: level1/relu
// cause: honest
// expect: feasible
// about: a host function with standard headers, an assertion, a lambda and some mathematics
// at: outside
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
// at: host
    assert(total > 0);
    auto tiles = [](long long n) { return CEIL_DIV(n, 4); };
    if (std::max<long long>(tiles(total), 1) < 1 || std::sqrt((double)total) < 0.0) return 1;
