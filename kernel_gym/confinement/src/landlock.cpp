#include "landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace confinement {
namespace {

// The same numbers on every architecture.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr int kPathBeneath = 1;
// clang-format off
enum Access : uint64_t {
    EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3,
    MAKE_CHAR = 1 << 6, MAKE_BLOCK = 1 << 11, REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15,
    FIRST_VERSION = (1 << 13) - 1,
};
// clang-format on

struct Ruleset { uint64_t files, network, scoped; };
struct __attribute__((packed)) PathRule {
    uint64_t allowed;
    int32_t folder;
};

// Each Landlock version supports more rights; requesting an unsupported one is an error.
Ruleset everything(int version) {
    Ruleset all{FIRST_VERSION, 0, 0};
    if (version >= 2) all.files |= REFER;
    if (version >= 3) all.files |= TRUNCATE;
    if (version >= 4) all.network = 3;
    if (version >= 5) all.files |= IOCTL_DEV;
    if (version >= 6) all.scoped = 3;
    return all;
}

bool allow(int ruleset, const std::string &path, uint64_t access) {
    const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0) return true;
    struct stat kind{};
    fstat(place, &kind);
    if (!S_ISDIR(kind.st_mode)) access &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
    const PathRule rule{access, place};
    const bool added = syscall(kAddRule, ruleset, kPathBeneath, &rule, 0) == 0;
    close(place);
    return added;
}

}  // namespace

int landlock_version() {
    const long version = syscall(kCreateRuleset, nullptr, 0, 1);
    return version > 0 ? static_cast<int>(version) : 0;
}

const char *restrict_files(const Paths &paths) {
    const int version = landlock_version();
    if (!version) return "this kernel has no Landlock";
    const Ruleset all = everything(version);
    const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    const int ruleset = static_cast<int>(syscall(kCreateRuleset, &all, size, 0));
    if (ruleset < 0) return "Landlock refused the rule set";
    bool ok = true;
    for (const auto &path : paths.read) ok &= allow(ruleset, path, EXECUTE | READ_FILE | READ_DIR);
    for (const auto &path : paths.write) ok &= allow(ruleset, path, all.files & ~(MAKE_CHAR | MAKE_BLOCK));
    ok = ok && syscall(kRestrictSelf, ruleset, 0) == 0;
    close(ruleset);
    return ok ? nullptr : "Landlock could not be applied";
}

}  // namespace confinement
