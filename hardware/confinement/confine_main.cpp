// confine: runs a compiler on untrusted source within limits.
//
//   confine --write DIR [--read PATH]... -- COMMAND ARGUMENTS...
//
// The command may write DIR only, read what is named, open no socket and look at no other process. Where the kernel has
// no Landlock or no seccomp that layer is left out: the tier of the sandbox says so. Exit status 125: not confined.
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

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

// Returns the position of the command.
int read_paths(int argc, char **argv, confinement::Paths *paths) {
    int at = 1;
    for (; at + 1 < argc && std::strcmp(argv[at], "--"); at += 2) {
        if (!std::strcmp(argv[at], "--read")) paths->read.push_back(argv[at + 1]);
        else if (!std::strcmp(argv[at], "--write")) paths->write.push_back(argv[at + 1]);
        else fail("unknown option");
    }
    if (at + 1 >= argc) fail("usage: confine --write DIR [--read PATH]... -- COMMAND ARGUMENTS...");
    return at + 1;
}

}  // namespace

int main(int argc, char **argv) {
    confinement::Paths paths;
    const int command = read_paths(argc, argv, &paths);
    paths.write.push_back("/dev/null");
    limit_all();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("cannot give up new privileges");
    if (confinement::landlock_version())
        if (const char *error = confinement::restrict_files(paths)) fail(error);
    if (confinement::seccomp_available())
        if (const char *error = confinement::filter_for_compiling().install()) fail(error);
    execv(argv[command], argv + command);
    fail(std::strerror(errno));
}
