// The functions that kernel code calls. Each forgets what was called for it: kernel code could read from its stack what is
// known here of other cores.
#include "kernel_process.h"
#include "noise.h"

using namespace sim::kernel_process;

#define ASC_FORGETTING extern "C" __attribute__((zero_call_used_regs("all")))
#include "exports.inc"
