#include "seccomp.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace confinement {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the sandbox knows x86-64 and aarch64"
#endif
constexpr uint32_t kX32Bit = 0x40000000;  // x86-64: the same calls again under other numbers

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kKill = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM, kAbsent = SECCOMP_RET_ERRNO | ENOSYS;

constexpr uint32_t low_half(unsigned argument) {
    return static_cast<uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));
}

}  // namespace

Filter::Filter(uint32_t otherwise) : otherwise_(otherwise) {
    statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    jump_equal(kArchitecture, 1, 0);
    statement(BPF_RET | BPF_K, kKill);
    statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1));
    statement(BPF_RET | BPF_K, kKill);
#endif
}

void Filter::statement(uint16_t code, uint32_t k) { program_.push_back(BPF_STMT(code, k)); }

void Filter::jump_equal(uint32_t k, uint8_t yes, uint8_t no) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no));
}

Filter &Filter::on(std::initializer_list<int> calls, uint32_t action) {
    for (int call : calls) {
        jump_equal(static_cast<uint32_t>(call), 0, 1);
        statement(BPF_RET | BPF_K, action);
    }
    return *this;
}

Filter &Filter::on_if(int call, unsigned argument, uint32_t mask, uint32_t value, uint32_t action) {
    jump_equal(static_cast<uint32_t>(call), 0, 5);
    statement(BPF_LD | BPF_W | BPF_ABS, low_half(argument));
    statement(BPF_ALU | BPF_AND | BPF_K, mask);
    jump_equal(value, 0, 1);
    statement(BPF_RET | BPF_K, action);
    statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    return *this;
}

Filter &Filter::only_with(int call, unsigned argument, std::initializer_list<uint32_t> values) {
    for (uint32_t value : values) on_if(call, argument, ~0u, value, kAllow);
    return on({call}, kRefuse);
}

const char *Filter::install() const {
    std::vector<sock_filter> program = program_;
    program.push_back(BPF_STMT(BPF_RET | BPF_K, otherwise_));
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) ? "seccomp refused the filter" : nullptr;
}

bool seccomp_available() {
    return prctl(PR_GET_SECCOMP) >= 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &kKill) == 0;
}

Filter filter_for_loading() {
    Filter filter(kRefuse);
    filter.on({SYS_openat, SYS_read, SYS_pread64, SYS_close, SYS_fstat, SYS_newfstatat, SYS_lseek, SYS_mmap, SYS_munmap,
               SYS_mprotect, SYS_brk, SYS_madvise, SYS_futex, SYS_rt_sigprocmask, SYS_sched_yield, SYS_getrandom,
               SYS_exit, SYS_exit_group},
              kAllow);
    filter.on_if(SYS_prctl, 0, ~0u, PR_SET_SECCOMP, kAllow);
    filter.on_if(SYS_prctl, 0, ~0u, PR_SET_DUMPABLE, kAllow);
    return filter;
}

Filter filter_for_running() {
    Filter filter(kKill);
    filter.on({SYS_munmap, SYS_brk, SYS_madvise, SYS_rt_sigprocmask, SYS_sched_yield, SYS_exit, SYS_exit_group},
              kAllow);
    filter.on_if(SYS_mmap, 2, PROT_EXEC, 0, kAllow);
    filter.on_if(SYS_mprotect, 2, PROT_EXEC, 0, kAllow);
    const uint32_t operation = ~static_cast<uint32_t>(FUTEX_PRIVATE_FLAG);
    filter.on_if(SYS_futex, 1, operation, FUTEX_WAIT, kAllow);
    filter.on_if(SYS_futex, 1, operation, FUTEX_WAKE, kAllow);
    return filter;
}

namespace {

// Refuses network, other processes and the administration of the machine.
Filter &refuse_privileges(Filter &filter) {
    filter.on({SYS_socket,
               SYS_socketpair,
               SYS_connect,
               SYS_bind,
               SYS_listen,
               SYS_accept,
               SYS_accept4,
               SYS_sendto,
               SYS_sendmsg,
               SYS_ptrace,
               SYS_process_vm_readv,
               SYS_process_vm_writev,
               SYS_bpf,
               SYS_perf_event_open,
               SYS_userfaultfd,
               SYS_keyctl,
               SYS_add_key,
               SYS_request_key,
               SYS_mount,
               SYS_umount2,
               SYS_pivot_root,
               SYS_chroot,
               SYS_unshare,
               SYS_setns,
               SYS_init_module,
               SYS_finit_module,
               SYS_delete_module,
               SYS_kexec_load,
               SYS_reboot,
               SYS_swapon,
               SYS_swapoff,
               SYS_sethostname,
               SYS_settimeofday,
               SYS_clock_settime,
               SYS_quotactl,
               SYS_acct,
               SYS_kcmp,
               SYS_open_by_handle_at,
               SYS_name_to_handle_at,
               SYS_setsid,
               SYS_shmget,
               SYS_msgget,
               SYS_semget,
               SYS_mq_open},
              kRefuse);
#if defined(SYS_io_uring_setup)
    filter.on({SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register}, kAbsent);
#endif
    return filter;
}

// Refuses what two processes of one user could tell each other by: locks, times, owners and attributes of files, whether
// pages of them are in memory, limits and priorities of processes, the machine's name.
Filter &refuse_shared_state(Filter &filter) {
    filter.on({SYS_flock,           SYS_fchmod,
               SYS_fchmodat,        SYS_fchown,
               SYS_fchownat,        SYS_utimensat,
               SYS_setxattr,        SYS_lsetxattr,
               SYS_fsetxattr,       SYS_removexattr,
               SYS_lremovexattr,    SYS_fremovexattr,
               SYS_inotify_init1,   SYS_inotify_add_watch,
               SYS_fanotify_init,   SYS_fanotify_mark,
               SYS_mincore,         SYS_fadvise64,
               SYS_readahead,       SYS_preadv2,
               SYS_getpriority,     SYS_setpriority,
               SYS_ioprio_get,      SYS_ioprio_set,
               SYS_get_robust_list, SYS_move_pages,
               SYS_migrate_pages,   SYS_getpgid,
               SYS_setpgid,         SYS_getsid,
               SYS_setuid,          SYS_setgid,
               SYS_setreuid,        SYS_setregid,
               SYS_setresuid,       SYS_setresgid,
               SYS_setfsuid,        SYS_setfsgid,
               SYS_setgroups,       SYS_setdomainname,
               SYS_adjtimex,        SYS_clock_adjtime,
               SYS_syslog,          SYS_shmat,
               SYS_shmctl,          SYS_msgsnd,
               SYS_msgrcv,          SYS_msgctl,
               SYS_semop,           SYS_semtimedop,
               SYS_semctl,          SYS_mq_unlink},
              kRefuse);
#if defined(__x86_64__)  // older calls that do the same
    filter.on({SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_inotify_init}, kRefuse);
#endif
    // Newer ones, which have the same numbers on every architecture: pidfd_getfd, process_madvise, process_mrelease,
    // cachestat, fchmodat2, setxattrat, removexattrat, file_setattr.
    filter.on({438, 440, 448, 451, 452, 463, 466, 469}, kAbsent);
    const auto self = static_cast<uint32_t>(getpid());
    for (int call : {SYS_prlimit64, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam,
                     SYS_sched_setparam, SYS_sched_getscheduler, SYS_sched_setscheduler, SYS_sched_getattr,
                     SYS_sched_setattr, SYS_sched_rr_get_interval})
        filter.only_with(call, 0, {0, self});
    filter.only_with(SYS_fcntl, 1, {F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC});
    filter.only_with(SYS_ioctl, 1, {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX});
    return filter;
}

}  // namespace

Filter filter_for_compiling() {
    Filter filter(kAllow);
    return refuse_privileges(filter);
}

Filter filter_for_one_process() {
    Filter filter(kAllow);
    filter.on({SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_open, SYS_pidfd_send_signal},
              kRefuse);
    // abort() and raise() signal a thread of this process.
    filter.on_if(SYS_tgkill, 0, ~0u, static_cast<uint32_t>(getpid()), kAllow);
    filter.on({SYS_tgkill}, kRefuse);
#if defined(SYS_fork)
    filter.on({SYS_fork, SYS_vfork}, kRefuse);
#endif
    // The flags of clone3 lie in memory, where a filter cannot see them; without it the C library calls clone.
    filter.on({SYS_clone3}, kAbsent);
    filter.on_if(SYS_clone, 0, CLONE_THREAD, 0, kRefuse);
    return refuse_shared_state(refuse_privileges(filter));
}

Filter filter_for_files_only() {
    Filter filter(kRefuse);
    // What the C library calls when a program starts, and what reading and writing a file and memory need.
    filter.on({SYS_execve,
               SYS_set_tid_address,
               SYS_set_robust_list,
               SYS_getrandom,
               SYS_rt_sigaction,
               SYS_uname,
               SYS_openat,
               SYS_read,
               SYS_pread64,
               SYS_readv,
               SYS_write,
               SYS_writev,
               SYS_lseek,
               SYS_close,
               SYS_fstat,
               SYS_newfstatat,
               SYS_faccessat,
               SYS_readlinkat,
               SYS_mmap,
               SYS_munmap,
               SYS_mremap,
               SYS_mprotect,
               SYS_brk,
               SYS_madvise,
               SYS_futex,
               SYS_rt_sigprocmask,
               SYS_sched_yield,
               SYS_clock_gettime,
               SYS_getpid,
               SYS_gettid,
               SYS_exit,
               SYS_exit_group},
              kAllow);
#if defined(SYS_rseq)
    filter.on({SYS_rseq}, kAllow);
#endif
#if defined(__x86_64__)
    filter.on({SYS_open, SYS_stat, SYS_access, SYS_readlink, SYS_arch_prctl}, kAllow);
#endif
    const auto self = static_cast<uint32_t>(getpid());
    filter.only_with(SYS_tgkill, 0, {self});  // abort()
    filter.only_with(SYS_prlimit64, 0, {0, self});
    return filter;
}

}  // namespace confinement
