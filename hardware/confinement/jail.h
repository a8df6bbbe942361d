// Confines a process before it runs a kernel's code: nothing to open, nothing to signal, nothing to start.
#pragma once

namespace confinement {

enum Layer : unsigned { LIMITS = 1, LANDLOCK = 2, SECCOMP = 4, ALL_LAYERS = 7 };

// The layers that this machine offers.
unsigned available_layers();

// First half, before the kernel's code is loaded: files, environment, limits, privileges, most system calls. Only the
// descriptor `code` stays open (as the result, via `kept`). Returns null, or what went wrong.
const char *confine_for_loading(unsigned layers, unsigned cpu_seconds, int code, int *kept);

// Second half, between loading and calling: no more files, no executable memory, any other system call is death.
const char *confine_for_running(unsigned layers);

}  // namespace confinement
