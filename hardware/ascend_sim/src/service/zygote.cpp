#include "zygote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>
#include <stdexcept>

#include "kernel_process/noise.h"
#include "kernel_process/process.h"

namespace sim {
namespace {

struct Message {
    enum : uint32_t { Start, Started, Ended } what;
    int32_t value;         // Started: process id; Ended: status of waitpid
    uint32_t entered = 0;  // Ended: whether the process began to load code
};

bool send_message(int channel, const Message &message, int descriptor = -1) {
    iovec part{const_cast<Message *>(&message), sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptor >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        cmsghdr *carried = CMSG_FIRSTHDR(&header);
        carried->cmsg_level = SOL_SOCKET;
        carried->cmsg_type = SCM_RIGHTS;
        carried->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(carried), &descriptor, sizeof descriptor);
    }
    return sendmsg(channel, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
}

bool receive_message(int channel, Message *message, int *descriptor = nullptr) {
    iovec part{message, sizeof *message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t got;
    do got = recvmsg(channel, &header, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof *message)) return false;
    const cmsghdr *carried = CMSG_FIRSTHDR(&header);
    if (descriptor && carried) std::memcpy(descriptor, CMSG_DATA(carried), sizeof *descriptor);
    return true;
}

// Runs one kernel process at a time: fork, send its id, wait, send its exit status.
[[noreturn]] void serve(Ring &ring, unsigned layers, int channel) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "ascend-zygote");
    // Kernel processes write it before they load code, and unmap it then: code cannot take it back.
    void *page = mmap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) _exit(1);
    auto *entered = static_cast<volatile uint32_t *>(page);
    const int noise = kernel_process::make_noise();
    if (noise < 0) _exit(1);
    for (;;) {
        Message order{};
        int code = -1;
        if (!receive_message(channel, &order, &code)) _exit(0);
        *entered = 0;
        const pid_t kernel = fork();
        if (kernel == 0) {
            setpgid(0, 0);
            prctl(PR_SET_NAME, "ascend-kernel");
            kernel_process::run_kernel(ring, layers, code, noise, entered);
        }
        if (kernel < 0) _exit(1);
        setpgid(kernel, kernel);
        close(code);
        send_message(channel, {Message::Started, kernel});
        int status = 0;
        while (waitpid(kernel, &status, 0) < 0 && errno == EINTR) {
        }
        send_message(channel, {Message::Ended, status, *entered});
        ring.device_sleeps.store(0);
        wake(&ring.device_sleeps);
    }
}

}  // namespace

Zygote::Zygote(Ring &ring, unsigned layers, int client) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        throw std::runtime_error("cannot make a socket pair");
    zygote_ = fork();
    if (zygote_ < 0) throw std::runtime_error("cannot fork the zygote");
    if (zygote_ == 0) {
        close(ends[0]);
        close(client);
        serve(ring, layers, ends[1]);
    }
    close(ends[1]);
    channel_ = ends[0];
}

Zygote::~Zygote() {
    if (kernel_) stop();
    close(channel_);
    waitpid(zygote_, nullptr, 0);
}

void Zygote::start(int code) {
    Message started{};
    if (!send_message(channel_, {Message::Start, 0}, code) || !receive_message(channel_, &started))
        throw std::runtime_error("the zygote died");
    kernel_ = started.value;
}

bool Zygote::ended(int milliseconds) {
    if (!kernel_) return true;
    pollfd waiting{channel_, POLLIN, 0};
    if (poll(&waiting, 1, milliseconds) <= 0) return false;
    read_end();
    return true;
}

double Zygote::kernel_seconds() const {
    clockid_t clock;
    timespec used{};
    if (!kernel_ || clock_getcpuclockid(kernel_, &clock) || clock_gettime(clock, &used)) return 0;
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void Zygote::read_end() {
    Message end{};
    if (!receive_message(channel_, &end)) throw std::runtime_error("the zygote died");
    status_ = end.value;
    entered_ = end.entered != 0;
    kernel_ = 0;
}

void Zygote::stop() {
    if (!kernel_) return;
    // The id cannot have been reused: the zygote reaps the process, and its message has not been read yet. If it has
    // been reaped already, the group no longer exists and the signal has no effect.
    kill(-kernel_, SIGKILL);
    read_end();
}

}  // namespace sim
