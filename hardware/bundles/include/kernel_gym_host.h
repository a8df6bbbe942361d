// The host side of an operator project, as far as bundles use it: shapes, tiling data, contexts, operator definitions.
//
// Everything here is our own; names and meanings are those of the public documentation. A bundle's tiling function is
// compiled against it and runs in a confined process, see ../src/host_main.cpp.
#pragma once
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/cube_tiling.h"
#include "host/ge.h"
#include "host/gert_attributes.h"
#include "host/gert_contexts.h"
#include "host/gert_tensors.h"
#include "host/ops.h"
#include "host/optiling.h"
#include "tiling/tiling_api.h"
