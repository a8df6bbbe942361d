// task: level1/relu
// cause: honest
// expect: feasible
// about: a loop over a list in braces, which needs a header of its own
// at: headers
#include <initializer_list>
// at: work
        for (uint32_t step : {1u, 2u, 3u}) n = n + step - step;
