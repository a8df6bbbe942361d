#include "seccomp.h"

#include <errno.h>
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
    return refuse_privileges(filter);
}

}  // namespace confinement
