// Random addresses: code that reads beyond its own memory does not know the distance to anything.
#pragma once
#include <cstddef>

namespace sim::kernel_process {

// Maps bytes of a file at a random address, or zeros. The first call must come before the process is confined.
void *map_anywhere(size_t bytes, int protection, int file = -1);

// Moves a mapping to a random address.
void *move_anywhere(void *memory, size_t bytes);

}  // namespace sim::kernel_process
