// Attacks on the sandbox. Each returns true if it got what it wanted.
#pragma once
#include <vector>

namespace confinement {

struct Probe {
    enum Stage { Loading, Running } stage;  // when it strikes: as the kernel's code is loaded, or as it runs
    bool quick;                             // part of the set that decides the tier
    const char *name;
    bool (*attack)();
};

const std::vector<Probe> &probes();

}  // namespace confinement
