// Ascend C for the simulator: the CANN 8.1 names of Atlas A2, each translated into one call of abi.h.
//
// Functions that A2 lacks are absent on purpose (Subs, Divs, Neg, Ands, Ors, Scatter, ...), and so is the C library.
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
