// Attacks on the sandbox. Each returns true if it succeeded.
#pragma once
#include <vector>

namespace confinement {

struct Probe {
    enum Stage { Loading, Running } stage;  // when it runs: while the kernel's code is loaded, or afterwards
    bool quick;                             // part of the set that decides the tier
    const char *name;
    bool (*attack)();
};

const std::vector<Probe> &probes();

}  // namespace confinement
