// The zygote: a process forked before the device knows any secret; kernel processes are forked from it.
#pragma once
#include <sys/types.h>

#include "protocol/ring.h"

namespace sim {

class Zygote {
public:
    // Forks the zygote. `layers` are those of confinement/jail.h; `client` is the device's socket, which is not for it.
    Zygote(Ring &ring, unsigned layers, int client);
    ~Zygote();
    Zygote(const Zygote &) = delete;
    Zygote &operator=(const Zygote &) = delete;

    // Starts a kernel process on the shared object behind `code`. The one before must have ended.
    void start(int code);
    // Waits until the kernel process has ended, at most so long; then `status` is that of waitpid.
    bool ended(int milliseconds);
    int status() const { return status_; }
    // Processor time that the kernel process has used.
    double kernel_seconds() const;
    // Ends the kernel process and whatever it may have started, and waits for it.
    void stop();

private:
    void read_end();

    int channel_;
    pid_t zygote_;
    pid_t kernel_ = 0;
    int status_ = 0;
};

}  // namespace sim
