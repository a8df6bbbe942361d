// The kernel process: confines itself, loads a kernel's code and calls it once.
#pragma once
#include "protocol/ring.h"

namespace sim::kernel_process {

// Exit statuses of a kernel process that could not make the call; Ring::error holds the reason.
enum ExitStatus { NOT_CONFINED = 101, NOT_LOADED = 102 };

// Never returns. The ring is moved to a random address. `code` is a descriptor of the kernel's shared object, `noise` one
// of the bytes that stacks begin with. `entered` is a shared page of its own: it is set to 1 and unmapped before the code
// is loaded.
[[noreturn]] void run_kernel(Ring &shared, unsigned layers, int code, int noise, volatile uint32_t *entered);

}  // namespace sim::kernel_process
