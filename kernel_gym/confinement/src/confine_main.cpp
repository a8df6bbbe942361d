// confine: runs a compiler or an interpreter on untrusted source within limits.
//
//   confine --layers N --write DIR [--read PATH]... [--memory BYTES] [--cpu-seconds N] [--processes one]
//           -- COMMAND ARGUMENTS...
//
// The command may write DIR only, read the named paths, open no socket and inspect no other process, as far as the
// layers (those of jail.h) enforce it; the tier of the sandbox reports how far. Exit status 125: not confined.
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "jail.h"
#include "landlock.h"
#include "seccomp.h"

namespace {

constexpr int kNotConfined = 125;

struct Options {
    unsigned layers = confinement::ALL_LAYERS;
    rlim_t memory = 4ull << 30;
    rlim_t cpu_seconds = 20;
    bool one_process = false;  // threads only
    confinement::Paths paths;
    int command;  // its position
};

[[noreturn]] void fail(const char *why) {
    std::fprintf(stderr, "confine: %s\n", why);
    _exit(kNotConfined);
}

void limit(int resource, rlim_t value) {
    rlimit now{};
    getrlimit(static_cast<__rlimit_resource>(resource), &now);
    const rlim_t both = now.rlim_max < value ? now.rlim_max : value;
    const rlimit wanted{both, both};
    if (setrlimit(static_cast<__rlimit_resource>(resource), &wanted)) fail("cannot set resource limits");
}

void limit_all(const Options &options) {
    limit(RLIMIT_AS, options.memory);
    limit(RLIMIT_CPU, options.cpu_seconds);
    limit(RLIMIT_FSIZE, 64 << 20);
    limit(RLIMIT_NOFILE, 256);
    limit(RLIMIT_CORE, 0);
}

Options read_options(int argc, char **argv) {
    Options options;
    int at = 1;
    for (; at + 1 < argc && std::strcmp(argv[at], "--"); at += 2) {
        if (!std::strcmp(argv[at], "--read")) options.paths.read.push_back(argv[at + 1]);
        else if (!std::strcmp(argv[at], "--write")) options.paths.write.push_back(argv[at + 1]);
        else if (!std::strcmp(argv[at], "--layers")) options.layers = static_cast<unsigned>(std::atoi(argv[at + 1]));
        else if (!std::strcmp(argv[at], "--memory")) options.memory = std::strtoull(argv[at + 1], nullptr, 10);
        else if (!std::strcmp(argv[at], "--cpu-seconds"))
            options.cpu_seconds = std::strtoull(argv[at + 1], nullptr, 10);
        else if (!std::strcmp(argv[at], "--processes")) options.one_process = !std::strcmp(argv[at + 1], "one");
        else fail("unknown option");
    }
    if (at + 1 >= argc)
        fail(
            "usage: confine --layers N --write DIR [--read PATH]... [--memory BYTES] [--cpu-seconds N] [--processes one] -- COMMAND ARGUMENTS...");
    options.command = at + 1;
    return options;
}

confinement::Filter filter(const Options &options) {
    return options.one_process ? confinement::filter_for_one_process() : confinement::filter_for_compiling();
}

}  // namespace

int main(int argc, char **argv) {
    Options options = read_options(argc, argv);
    options.paths.write.push_back("/dev/null");
    limit_all(options);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("cannot give up new privileges");
    if (options.layers & confinement::LANDLOCK)
        if (const char *error = confinement::restrict_files(options.paths)) fail(error);
    if (options.layers & confinement::SECCOMP)
        if (const char *error = filter(options).install()) fail(error);
    execv(argv[options.command], argv + options.command);
    fail(std::strerror(errno));
}
