#include "confine.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>

#include "jail.h"
#include "landlock.h"
#include "seccomp.h"

namespace {

struct Options {
    unsigned layers = confinement::ALL_LAYERS;
    rlim_t memory = 4ull << 30;
    rlim_t cpu_seconds = 20;
    const char *processes = "many";
    confinement::Paths paths;
};

bool limit(int resource, rlim_t value) {
    rlimit now{};
    getrlimit(static_cast<__rlimit_resource>(resource), &now);
    const rlim_t both = now.rlim_max < value ? now.rlim_max : value;
    const rlimit wanted{both, both};
    return setrlimit(static_cast<__rlimit_resource>(resource), &wanted) == 0;
}

bool limit_all(const Options &options) {
    return limit(RLIMIT_AS, options.memory) && limit(RLIMIT_CPU, options.cpu_seconds) &&
           limit(RLIMIT_FSIZE, 64 << 20) && limit(RLIMIT_NOFILE, 256) && limit(RLIMIT_CORE, 0);
}

bool read_option(const char *name, const char *value, Options &options) {
    if (!std::strcmp(name, "--read")) options.paths.read.push_back(value);
    else if (!std::strcmp(name, "--write")) options.paths.write.push_back(value);
    else if (!std::strcmp(name, "--layers")) options.layers = static_cast<unsigned>(std::atoi(value));
    else if (!std::strcmp(name, "--memory")) options.memory = std::strtoull(value, nullptr, 10);
    else if (!std::strcmp(name, "--cpu-seconds")) options.cpu_seconds = std::strtoull(value, nullptr, 10);
    else if (!std::strcmp(name, "--processes")) options.processes = value;
    else return false;
    return true;
}

confinement::Filter filter(const Options &options) {
    if (!std::strcmp(options.processes, "alone")) return confinement::filter_for_files_only();
    if (!std::strcmp(options.processes, "one")) return confinement::filter_for_one_process();
    return confinement::filter_for_compiling();
}

}  // namespace

const char *confine(int count, const char *const *words, int *command) {
    Options options;
    int at = 0;
    for (; at + 1 < count && std::strcmp(words[at], "--"); at += 2)
        if (!read_option(words[at], words[at + 1], options)) return "unknown option";
    if (at + 1 >= count) return "nothing follows the options";
    *command = at + 1;
    options.paths.write.push_back("/dev/null");
    if (!limit_all(options)) return "cannot set resource limits";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return "cannot give up new privileges";
    if (options.layers & confinement::LANDLOCK)
        if (const char *error = confinement::restrict_files(options.paths)) return error;
    return options.layers & confinement::SECCOMP ? filter(options).install() : nullptr;
}
