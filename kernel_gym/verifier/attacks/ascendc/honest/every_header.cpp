// task: level1/relu
// cause: S3
// expect: feasible
// about: every header that kernels may include, behind macros with names that their text has
// honest: relu
// at: headers
#define value 3
#define size 4
#define type 5
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <float.h>
#include <initializer_list>
#include <limits>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <tuple>
#include <type_traits>
#include <utility>
#include "lib/matmul_intf.h"
#undef value
#undef size
#undef type
// at: work
        constexpr float ends[] = {FLT_MAX, std::max(-FLT_MAX, -INFINITY)};
        if (ends[0] < ends[1] || offsetof(ReluTiling, tile) != 8) return;
