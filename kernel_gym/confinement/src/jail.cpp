#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "landlock.h"
#include "seccomp.h"

namespace confinement {
namespace {

constexpr unsigned kNobody = 65534;

void close_all_from(int first) {
#if defined(SYS_close_range)
    if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
#endif
    for (int fd = first; fd < 4096; ++fd) close(fd);
}

// Redirects the standard streams to /dev/null, numbers the descriptors from FIRST_KEPT on, and closes all others.
bool keep_only(std::initializer_list<int> kept) {
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere < 0) return false;
    std::vector<int> copies;  // above the numbers that are assigned
    for (const int descriptor : kept) copies.push_back(fcntl(descriptor, F_DUPFD, FIRST_KEPT + kept.size()));
    for (int stream = 0; stream < FIRST_KEPT; ++stream) dup2(nowhere, stream);
    int next = FIRST_KEPT;
    for (const int copy : copies)
        if (dup2(copy, next++) < 0) return false;
    close_all_from(next);
    return true;
}

bool limit(int resource, rlim_t value) {
    const rlimit both{value, value};
    return setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0;
}

bool limit_all(unsigned cpu_seconds) {
    return limit(RLIMIT_CORE, 0) && limit(RLIMIT_AS, 1ull << 30) && limit(RLIMIT_CPU, cpu_seconds) &&
           limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 16) && limit(RLIMIT_NPROC, 0) && limit(RLIMIT_MEMLOCK, 0) &&
           limit(RLIMIT_MSGQUEUE, 0) && limit(RLIMIT_STACK, 8 << 20);
}

// Changes root to nobody. Where that user does not exist (some containers), drops the capabilities.
bool drop_privileges() {
    if (geteuid() == 0 && setgroups(0, nullptr) == 0 && setresgid(kNobody, kNobody, kNobody) == 0 &&
        setresuid(kNobody, kNobody, kNobody) == 0)
        return true;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    return syscall(SYS_capset, &header, none) == 0;
}

}  // namespace

unsigned available_layers() {
    return LIMITS | (landlock_version() ? LANDLOCK : 0u) | (seccomp_available() ? SECCOMP : 0u);
}

const char *confine_for_loading(unsigned layers, unsigned cpu_seconds, std::initializer_list<int> kept) {
    const pid_t parent = getppid();
    if (!keep_only(kept)) return "cannot open /dev/null, or keep the descriptors";
    if (layers & LIMITS) {
        clearenv();
        if (!limit_all(cpu_seconds)) return "cannot set resource limits";
        if (!drop_privileges()) return "cannot drop privileges";
    }
    // After the change of user, which would undo it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return "the parent is gone";
    prctl(PR_SET_DUMPABLE, 1);  // otherwise /proc/self, through which the code is loaded, belongs to root
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return "cannot give up new privileges";
    if (layers & LANDLOCK)
        if (const char *error = restrict_files({})) return error;
    return layers & SECCOMP ? filter_for_loading().install() : nullptr;
}

const char *confine_for_running(unsigned layers) {
    prctl(PR_SET_DUMPABLE, 0);
    return layers & SECCOMP ? filter_for_running().install() : nullptr;
}

}  // namespace confinement
