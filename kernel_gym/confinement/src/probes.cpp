#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace confinement {
namespace {

bool readable(const char *path) {
    char byte;
    const int file = open(path, O_RDONLY);
    return file >= 0 && read(file, &byte, 1) == 1;
}

bool creatable(const char *path) {
    const int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (file >= 0) unlink(path);
    return file >= 0;
}

bool of_parent(const char *what, int flags) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/%s", getppid(), what);
    return open(path, flags) >= 0;
}

bool child_ran(pid_t child) {
    if (child < 0) return false;
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return true;
}

bool executes(const char *program) {
    const pid_t child = fork();
    if (child == 0) {
        execl(program, program, static_cast<char *>(nullptr));
        _exit(42);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A system call without the C library, as inline assembly in a kernel would make it.
long raw_openat(const char *path) {
#if defined(__x86_64__)
    long result;
    register long flags asm("rdx") = O_RDONLY;
    register long mode asm("r10") = 0;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(SYS_openat), "D"(AT_FDCWD), "S"(path), "r"(flags), "r"(mode)
                 : "rcx", "r11", "memory");
    return result;
#else
    register long number asm("x8") = SYS_openat;
    register long folder asm("x0") = AT_FDCWD;
    register const char *name asm("x1") = path;
    register long flags asm("x2") = O_RDONLY;
    asm volatile("svc #0" : "+r"(folder) : "r"(number), "r"(name), "r"(flags) : "memory");
    return folder;
#endif
}

bool connects() {
    const int end = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(9);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // No server listens there: ECONNREFUSED means that the attempt left the process.
    return end >= 0 &&
           (connect(end, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 || errno == ECONNREFUSED);
}

bool threads() {
    static char stack[1 << 16];
    return clone([](void *) { return 0; }, stack + sizeof stack,
                 CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, nullptr) > 0;
}

bool writes_own_constants() {
    static const volatile char constant[] = "constant";
    const int file = open("/proc/self/mem", O_RDWR);
    return file >= 0 && pwrite(file, "C", 1, static_cast<off_t>(reinterpret_cast<uintptr_t>(constant))) == 1;
}

bool reads_parent_memory() {
    char here[8];
    iovec to{here, sizeof here}, from{reinterpret_cast<void *>(&readable), sizeof here};
    return process_vm_readv(getppid(), &to, 1, &from, 1, 0) > 0;
}

bool makes_code_writable() {
    const uintptr_t page = reinterpret_cast<uintptr_t>(&getpid) & ~uintptr_t{4095};
    return mprotect(reinterpret_cast<void *>(page), 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

bool writes_to_inherited() {
    for (int file = 3; file < 64; ++file)
        if (write(file, "forged", 6) == 6) return true;
    return false;
}

bool handles(int signal) {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    return sigaction(signal, &ignore, nullptr) == 0;
}

bool raises(int resource) {
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(static_cast<__rlimit_resource>(resource), &unlimited) == 0;
}

bool reserves(size_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
           MAP_FAILED;
}

bool fills_disk() {
    static char block[1 << 16];
    const int file = open("/tmp/kernel_gym_probe_fill", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (file < 0) return false;
    unlink("/tmp/kernel_gym_probe_fill");
    for (int i = 0; i < 64; ++i)
        if (write(file, block, sizeof block) != static_cast<ssize_t>(sizeof block)) return false;
    return true;
}

bool opens_perf() {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.exclude_kernel = 1;
    return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0) >= 0;
}

bool makes_bpf_map() {
    bpf_attr attributes{};
    attributes.map_type = BPF_MAP_TYPE_ARRAY;
    attributes.key_size = attributes.value_size = 4;
    attributes.max_entries = 1;
    return syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes) >= 0;
}

bool reaches_parent_by_signal() { return kill(getppid(), 0) == 0; }

bool enlarges_stack() {
    const rlimit large{256 << 20, 256 << 20};
    return setrlimit(RLIMIT_STACK, &large) == 0;
}

#if defined(__x86_64__)
bool calls_by_x32_number() { return syscall(0x40000000 | SYS_getpid) > 0; }
#endif

}  // namespace

const std::vector<Probe> &probes() {
    using P = Probe;
    static const std::vector<Probe> all = {
        {P::Loading, true, "loading: read /etc/passwd", [] { return readable("/etc/passwd"); }},
        {P::Loading, true, "loading: create a file in /tmp", [] { return creatable("/tmp/kernel_gym_probe"); }},
        {P::Loading, false, "loading: list a folder", [] { return open("/", O_RDONLY | O_DIRECTORY) >= 0; }},
        {P::Loading, true, "loading: connect", connects},
        {P::Loading, true, "loading: fork", [] { return child_ran(fork()); }},
        {P::Loading, true, "loading: run a program", [] { return executes("/bin/true"); }},
        {P::Loading, false, "loading: handle signals", [] { return handles(SIGTERM); }},
        {P::Loading, false, "loading: signal the parent", reaches_parent_by_signal},
        {P::Running, true, "read /etc/passwd", [] { return readable("/etc/passwd"); }},
        {P::Running, false, "read /proc/self/maps", [] { return readable("/proc/self/maps"); }},
        {P::Running, true, "open by inline assembly", [] { return raw_openat("/etc/passwd") >= 0; }},
        {P::Running, false, "write read-only memory through /proc/self/mem", writes_own_constants},
        {P::Running, true, "create a file in /tmp", [] { return creatable("/tmp/kernel_gym_probe"); }},
        {P::Running, false, "create a file in /dev/shm", [] { return creatable("/dev/shm/kernel_gym_probe"); }},
        {P::Running, false, "fill the disk", fills_disk},
        {P::Running, false, "make a folder",
         [] { return mkdir("/tmp/kernel_gym_probe_d", 0700) == 0 && rmdir("/tmp/kernel_gym_probe_d") == 0; }},
        {P::Running, false, "list a folder", [] { return open("/", O_RDONLY | O_DIRECTORY) >= 0; }},
        {P::Running, false, "learn the current folder",
         [] {
             char path[4096];
             return getcwd(path, sizeof path) != nullptr;
         }},
        {P::Running, true, "make a socket", [] { return socket(AF_INET, SOCK_STREAM, 0) >= 0; }},
        {P::Running, false, "connect", connects},
        {P::Running, false, "make a local socket", [] { return socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }},
        {P::Running, true, "fork", [] { return child_ran(fork()); }},
        {P::Running, false, "vfork",
         [] { return child_ran(static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))); }},
        {P::Running, true, "start a thread", threads},
        {P::Running, true, "run a program", [] { return executes("/bin/true"); }},
        {P::Running, true, "signal the parent", reaches_parent_by_signal},
        {P::Running, false, "stop itself", [] { return kill(getpid(), 0) == 0; }},
        {P::Running, true, "trace the parent", [] { return ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr) == 0; }},
        {P::Running, true, "read the parent's memory", reads_parent_memory},
        {P::Running, false, "open the parent's memory", [] { return of_parent("mem", O_RDWR); }},
        {P::Running, false, "open the parent's environment", [] { return of_parent("environ", O_RDONLY); }},
        {P::Running, false, "read a secret from the environment",
         [] { return getenv("KERNEL_GYM_PROBE_SECRET") != nullptr; }},
        {P::Running, true, "write to inherited descriptors", writes_to_inherited},
        {P::Running, true, "reserve 64 GB", [] { return reserves(64ull << 30); }},
        {P::Running, true, "map writable code",
         [] {
             return mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                    MAP_FAILED;
         }},
        {P::Running, true, "make code writable", makes_code_writable},
        {P::Running, false, "survive a bad pointer", [] { return handles(SIGSEGV); }},
        {P::Running, true, "ignore termination", [] { return handles(SIGTERM); }},
        {P::Running, false, "raise its memory limit", [] { return raises(RLIMIT_AS); }},
        {P::Running, false, "raise its time limit", [] { return raises(RLIMIT_CPU); }},
        {P::Running, false, "enlarge its stack", enlarges_stack},
        {P::Running, false, "become root", [] { return setresuid(0, 0, 0) == 0; }},
        {P::Running, false, "make namespaces", [] { return unshare(CLONE_NEWUSER) == 0; }},
        {P::Running, false, "open io_uring",
         [] {
             char setup[256] = {};
             return syscall(425, 1, setup) >= 0;
         }},
        {P::Running, false, "open bpf", makes_bpf_map},
        {P::Running, false, "open perf events", opens_perf},
        {P::Running, false, "open userfaultfd", [] { return syscall(SYS_userfaultfd, 1) >= 0; }},
        {P::Running, false, "make an anonymous file", [] { return memfd_create("probe", 0) >= 0; }},
        {P::Running, false, "make shared memory",
         [] {
             const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
             if (id >= 0) shmctl(id, IPC_RMID, nullptr);
             return id >= 0;
         }},
        {P::Running, false, "let others trace it", [] { return prctl(PR_SET_DUMPABLE, 1) == 0; }},
        {P::Running, false, "outlive its parent", [] { return prctl(PR_SET_PDEATHSIG, 0) == 0; }},
        {P::Running, false, "leave its process group", [] { return setsid() >= 0; }},
#if defined(__x86_64__)
        {P::Running, false, "call by x32 numbers", calls_by_x32_number},
#endif
    };
    return all;
}

}  // namespace confinement
