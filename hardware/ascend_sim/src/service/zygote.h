// The zygote: a process forked before the device receives any secret. Kernel processes are forked from it.
#pragma once
#include <sys/types.h>

#include "protocol/ring.h"

namespace sim {

class Zygote {
public:
    // Forks the zygote. `layers` are those of confinement/jail.h; `client` is the device's socket, which the zygote
    // closes.
    Zygote(Ring &ring, unsigned layers, int client);
    ~Zygote();
    Zygote(const Zygote &) = delete;
    Zygote &operator=(const Zygote &) = delete;

    // Starts a kernel process on the shared object behind `code`. The previous kernel process must have ended.
    void start(int code);
    // Waits at most `milliseconds` for the kernel process to end; then `status` is that of waitpid.
    bool ended(int milliseconds);
    int status() const { return status_; }
    // Whether the kernel process that ended had begun to load code. If not, only trusted code has run in it.
    bool entered() const { return entered_; }
    // Processor time used by the kernel process.
    double kernel_seconds() const;
    // Kills the kernel process and its process group, and waits for the end.
    void stop();

private:
    void read_end();

    int channel_;
    pid_t zygote_;
    pid_t kernel_ = 0;
    int status_ = 0;
    bool entered_ = false;
};

}  // namespace sim
