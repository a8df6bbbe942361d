// Confines a process before it runs a kernel's code: it can open no files, signal no processes and start none.
#pragma once
#include <initializer_list>

namespace confinement {

enum Layer : unsigned { LIMITS = 1, LANDLOCK = 2, SECCOMP = 4, ALL_LAYERS = 7 };

// The layers that this machine supports.
unsigned available_layers();

// The number of the first descriptor that stays open.
constexpr int FIRST_KEPT = 3;

// First half, before the kernel's code is loaded: files, environment, limits, privileges, most system calls. Only the
// descriptors `kept` stay open, numbered from FIRST_KEPT on. Returns null, or what went wrong.
const char *confine_for_loading(unsigned layers, unsigned cpu_seconds, std::initializer_list<int> kept);

// Second half, between loading and calling: no more files, no executable memory; any other system call kills the
// process.
const char *confine_for_running(unsigned layers);

}  // namespace confinement
