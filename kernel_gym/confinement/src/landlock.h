// Landlock: restricts the files that a process may access. Needs no headers newer than the oldest kernel that supports
// it.
#pragma once
#include <string>
#include <vector>

namespace confinement {

struct Paths {
    std::vector<std::string> read;   // read and execute, with everything beneath
    std::vector<std::string> write;  // everything but devices
};

// The version of the kernel's Landlock; 0 if there is none.
int landlock_version();

// Denies every file except those beneath `paths`, all TCP, and signals and abstract sockets to other processes, as far
// as this kernel supports it. Paths that do not exist are skipped. Returns null, or what went wrong. Needs
// no_new_privs.
const char *restrict_files(const Paths &paths);

}  // namespace confinement
