// Landlock: which files a process may reach. No headers newer than the oldest kernel that has it are needed.
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

// Denies every file but those beneath `paths`, all TCP, and signals and abstract sockets to the outside, as far as this
// kernel knows how. Paths that do not exist are skipped. Returns null, or what went wrong. Needs no_new_privs.
const char *restrict_files(const Paths &paths);

}  // namespace confinement
