// task: level1/relu
// cause: honest
// expect: feasible
// about: the largest and the least number of a list
// at: outside
#include <algorithm>
// instead of: work
        AscendC::Relu(y, x, std::min({n, std::max({1u, n / 2, n}), 1u << 30}));
