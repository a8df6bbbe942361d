// Ascend C for the simulator: CANN 8.1 names as Atlas A2 has them, each turned into one call of abi.h.
//
// What A2 lacks is absent on purpose (Subs, Divs, Neg, Ands, Ors, Scatter, ...), and so is the C library.
#pragma once
#include "detail/types.h"
#include "detail/tensor.h"
#include "detail/queue.h"
#include "detail/copy.h"
#include "detail/cube.h"
#include "detail/vector.h"
#include "detail/convert.h"
#include "detail/operators.h"
#include "detail/reduce.h"
#include "detail/arrange.h"
#include "detail/sync.h"
#include "detail/library.h"
#include "detail/tile.h"
#include "detail/softmax.h"
#include "detail/quantise.h"
#include "detail/sort.h"
#include "detail/message.h"
#include "detail/launch.h"
