// System call filters, assembled by hand: no dependency, the same on x86-64 and aarch64.
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace confinement {

class Filter {
public:
    // `otherwise` is the action for system calls without a rule (SECCOMP_RET_...).
    explicit Filter(uint32_t otherwise);
    Filter &on(std::initializer_list<int> calls, uint32_t action);
    // Allows a call if the lower 32 bits of an argument have one of the values, and refuses it otherwise.
    Filter &only_with(int call, unsigned argument, std::initializer_list<uint32_t> values);
    // Applies only if (argument & mask) == value, in its lower 32 bits.
    Filter &on_if(int call, unsigned argument, uint32_t mask, uint32_t value, uint32_t action);
    // Returns null, or what went wrong. Needs no_new_privs.
    const char *install() const;

private:
    void statement(uint16_t code, uint32_t k);
    void jump_equal(uint32_t k, uint8_t yes, uint8_t no);

    uint32_t otherwise_;
    std::vector<sock_filter> program_;
};

bool seccomp_available();

// For a kernel process: the system calls needed to load its code, then those needed to run it.
Filter filter_for_loading();
Filter filter_for_running();
// For a compiler: everything except the network, other processes and rarely needed kernel interfaces.
Filter filter_for_compiling();
// The same for a program that starts no other process and signals none, and shares no state with others that the kernel
// keeps for processes or files; it may have threads.
Filter filter_for_one_process();
// For a program that starts, reads and writes files, computes and ends.
Filter filter_for_files_only();

}  // namespace confinement
