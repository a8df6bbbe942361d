// ascend-sim: the device process. Serves one client over an inherited socket until the client closes it.
//
//   ascend-sim SOCKET [LAYERS]      SOCKET: descriptor of a stream socket; LAYERS: see confinement/jail.h
//
// A request is a length (4 bytes, little endian), the text described in request.h, and a descriptor of the tensors'
// memory; a reply is a length and JSON. A reply {"status": "error"} means that the device itself failed. Lengths of 0
// come before a reply that takes long.
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "jail.h"
#include "protocol/json.h"
#include "session.h"

namespace {

constexpr uint32_t kLargestRequest = 16 << 20;

bool read_all(int socket, void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = read(socket, static_cast<char *>(data) + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<size_t>(got);
    }
    return true;
}

bool write_all(int socket, const void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t sent = send(socket, static_cast<const char *>(data) + done, bytes - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        done += static_cast<size_t>(sent);
    }
    return true;
}

// The length comes first and carries the descriptor. False when the client has closed the socket.
bool receive(int socket, std::string *text, int *descriptor) {
    uint32_t length = 0;
    iovec part{&length, sizeof length};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t got;
    do got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof length) || length > kLargestRequest) return false;
    const cmsghdr *carried = CMSG_FIRSTHDR(&header);
    if (carried && carried->cmsg_type == SCM_RIGHTS) std::memcpy(descriptor, CMSG_DATA(carried), sizeof *descriptor);
    text->resize(length);
    return read_all(socket, text->data(), length);
}

bool reply(int socket, const std::string &json) {
    const uint32_t length = static_cast<uint32_t>(json.size());
    return write_all(socket, &length, sizeof length) && write_all(socket, json.data(), json.size());
}

std::string answer(int socket, const std::string &text, int descriptor, sim::Ring &ring, sim::Zygote &zygote,
                   std::unique_ptr<sim::L2> &l2) {
    try {
        const sim::Request request = sim::parse_request(text);
        return sim::Session(request, ring, zygote, l2, [socket] { reply(socket, ""); }).run(descriptor);
    } catch (const std::exception &error) {
        return sim::Object().set("status", "error").set("message", error.what()).done();
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const int socket = std::atoi(argv[1]);
    const unsigned layers = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : confinement::available_layers();
    signal(SIGPIPE, SIG_IGN);
    void *memory = mmap(nullptr, sizeof(sim::Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    sim::Ring &ring = *new (memory) sim::Ring;
    sim::Zygote zygote(ring, layers, socket);
    std::unique_ptr<sim::L2> l2;
    for (;;) {
        std::string text;
        int descriptor = -1;
        if (!receive(socket, &text, &descriptor)) return 0;
        const std::string json = answer(socket, text, descriptor, ring, zygote, l2);
        if (descriptor >= 0) close(descriptor);
        if (!reply(socket, json)) return 0;
    }
}
