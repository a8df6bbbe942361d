// sandbox-probes: tries to break out of the sandbox and reports which attacks succeeded.
//
//   sandbox-probes --layers                      what this machine offers: {"layers": N}
//   sandbox-probes --quick|--calls|--all LAYERS  {"tried": N, "reached": ["fork", ...]}
//
// --calls leaves out attacks while code is loaded. Each attack runs in its own process, confined exactly like a kernel
// process.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "jail.h"
#include "probes.h"

namespace {

enum { BLOCKED = 0, REACHED = 1, NOT_CONFINED = 101 };
constexpr int kPatienceMs = 3000;

[[noreturn]] void strike(const confinement::Probe &probe, unsigned layers) {
    using confinement::Probe;
    // Without layers no descriptor is closed either: this is the plain process that the others are compared with.
    if (layers && confinement::confine_for_loading(layers, 2, {})) _exit(NOT_CONFINED);
    if (probe.stage == Probe::Loading) _exit(probe.attack() ? REACHED : BLOCKED);
    if (layers && confinement::confine_for_running(layers)) _exit(NOT_CONFINED);
    _exit(probe.attack() ? REACHED : BLOCKED);
}

bool wait_for(pid_t child, int *status) {
    for (int waited = 0; waited < kPatienceMs; ++waited) {
        if (waitpid(child, status, WNOHANG) == child) return true;
        usleep(waited < 20 ? 100 : 1000);
    }
    kill(child, SIGKILL);
    waitpid(child, status, 0);
    return false;
}

int fate(const confinement::Probe &probe, unsigned layers) {
    const pid_t child = fork();
    if (child == 0) strike(probe, layers);
    int status = 0;
    // A process that was killed by the filter, stopped or hung counts as blocked.
    if (child < 0 || !wait_for(child, &status) || !WIFEXITED(status)) return BLOCKED;
    return WEXITSTATUS(status);
}

bool chosen(const confinement::Probe &probe, const std::string &set) {
    if (set == "--quick") return probe.quick;
    if (set == "--calls") return probe.quick && probe.stage == confinement::Probe::Running;
    return true;
}

int try_all(const std::string &set, unsigned layers) {
    int verdict[2];  // a descriptor that a kernel process must not inherit
    if (pipe(verdict)) return 1;
    setenv("KERNEL_GYM_PROBE_SECRET", "1", 1);
    std::string reached;
    int tried = 0;
    for (const auto &probe : confinement::probes()) {
        if (!chosen(probe, set)) continue;
        ++tried;
        const int result = fate(probe, layers);
        if (result == NOT_CONFINED) {
            std::fprintf(stderr, "a probe could not be confined with layers %u\n", layers);
            return 1;
        }
        if (result == REACHED) reached += std::string(reached.empty() ? "" : ", ") + '"' + probe.name + '"';
    }
    std::printf("{\"tried\": %d, \"reached\": [%s]}\n", tried, reached.c_str());
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc == 2 && !std::strcmp(argv[1], "--layers")) {
        std::printf("{\"layers\": %u}\n", confinement::available_layers());
        return 0;
    }
    if (argc != 3) return 2;
    return try_all(argv[1], static_cast<unsigned>(std::atoi(argv[2])));
}
