// The bytes that memory of kernel code holds before it has a value: no zeros, which would save the time of clearing it, and
// nothing that other cores or the functions of this process have left there.
#pragma once
#include <cstddef>

namespace sim::kernel_process {

enum : size_t { NOISE_BYTES = 1 << 20 };

// Returns the descriptor of a file of such bytes, always the same ones; -1 if there is no memory for it.
int make_noise();
// Takes the file for this process; before everything else here.
bool use_noise(int descriptor);
// Maps it at a random address, where it may be written: the file does not change.
void *map_noise();

// Overwrites the stack below the calling function with such bytes; after printing, more of it.
void forget();
void forget_printing();

// Forgets what was called, at the end of the function that has a variable of this type.
struct Forgetting {
    ~Forgetting() { forget(); }
};

}  // namespace sim::kernel_process
