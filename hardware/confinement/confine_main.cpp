// confine: runs a compiler on untrusted source within limits.
//
//   confine --layers N --write DIR [--read PATH]... -- COMMAND ARGUMENTS...
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

void limit_all() {
    limit(RLIMIT_AS, 4ull << 30);
    limit(RLIMIT_CPU, 20);
    limit(RLIMIT_FSIZE, 64 << 20);
    limit(RLIMIT_NOFILE, 256);
    limit(RLIMIT_CORE, 0);
}

struct Options {
    unsigned layers = confinement::ALL_LAYERS;
    confinement::Paths paths;
    int command;  // its position
};

Options read_options(int argc, char **argv) {
    Options options;
    int at = 1;
    for (; at + 1 < argc && std::strcmp(argv[at], "--"); at += 2) {
        if (!std::strcmp(argv[at], "--read")) options.paths.read.push_back(argv[at + 1]);
        else if (!std::strcmp(argv[at], "--write")) options.paths.write.push_back(argv[at + 1]);
        else if (!std::strcmp(argv[at], "--layers")) options.layers = static_cast<unsigned>(std::atoi(argv[at + 1]));
        else fail("unknown option");
    }
    if (at + 1 >= argc) fail("usage: confine --layers N --write DIR [--read PATH]... -- COMMAND ARGUMENTS...");
    options.command = at + 1;
    return options;
}

}  // namespace

int main(int argc, char **argv) {
    Options options = read_options(argc, argv);
    options.paths.write.push_back("/dev/null");
    limit_all();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("cannot give up new privileges");
    if (options.layers & confinement::LANDLOCK)
        if (const char *error = confinement::restrict_files(options.paths)) fail(error);
    if (options.layers & confinement::SECCOMP)
        if (const char *error = confinement::filter_for_compiling().install()) fail(error);
    execv(argv[options.command], argv + options.command);
    fail(std::strerror(errno));
}
