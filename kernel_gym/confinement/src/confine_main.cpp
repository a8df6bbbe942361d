// confine: runs a compiler or an interpreter on untrusted source within limits.
//
//   confine OPTIONS -- COMMAND ARGUMENTS...     (the options of confine.h)
//
// Exit status 125: not confined.
#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "confine.h"

namespace {

constexpr int kNotConfined = 125;

int fail(const char *why) {
    std::fprintf(stderr, "confine: %s\n", why);
    return kNotConfined;
}

}  // namespace

int main(int argc, char **argv) {
    int command = 0;
    if (const char *why = confine(argc - 1, argv + 1, &command)) return fail(why);
    execv(argv[1 + command], argv + 1 + command);
    return fail(std::strerror(errno));
}
