// host-runner: runs the host function of one kernel, confined, and records its launches.
//
//   host-runner LAYERS CPU_SECONDS SHARED_FD CODE_FD
//
// SHARED_FD is the memory of record.h, CODE_FD the shared object. The process holds no tensor and has no access to a
// device. This code is trusted, but the process is hostile once the kernel is loaded: the kernel can overwrite all of
// it and all that it records. The reader of the record must check it.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "jail.h"
#include "../include/kernel_gym.h"
#include "record.h"

using namespace host_runner;

namespace {

Shared *shared = nullptr;
uintptr_t code_base = 0;

[[noreturn]] void leave(State state, const char *why = "") {
    std::snprintf(shared->answer.error, sizeof shared->answer.error, "%s", why);
    shared->answer.state = state;
    _exit(0);
}

void append(const void *data, size_t size) {
    const size_t padded = (size + 7) / 8 * 8;
    if (shared->answer.used + padded > kLogBytes) leave(LOG_FULL);
    std::memcpy(shared->log + shared->answer.used, data, size);
    shared->answer.used += static_cast<uint32_t>(padded);
}

KernelArgs arguments(const Call &call) {
    static KernelTensor tensors[kMaxTensors];
    const uint32_t count = call.num_inputs + call.num_outputs;
    for (uint32_t i = 0; i < count && i < kMaxTensors; ++i) {
        const Tensor &given = call.tensors[i];
        tensors[i].ptr = reinterpret_cast<void *>(given.address);
        tensors[i].dtype = given.dtype;
        tensors[i].ndim = given.ndim;
        std::memcpy(tensors[i].shape, given.shape, sizeof given.shape);
    }
    KernelArgs args{};
    args.abi = 1;
    args.num_inputs = static_cast<int32_t>(call.num_inputs);
    args.num_outputs = static_cast<int32_t>(call.num_outputs);
    args.num_ints = static_cast<int32_t>(call.num_ints);
    args.num_floats = static_cast<int32_t>(call.num_floats);
    args.inputs = tensors;
    args.outputs = tensors + call.num_inputs;
    args.ints = call.ints;
    args.floats = call.floats;
    args.workspace = reinterpret_cast<void *>(call.workspace);
    args.workspace_bytes = call.workspace_bytes;
    return args;
}

void *load(int code) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", code);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) leave(NOT_LOADED, dlerror());
    link_map *map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) code_base = map->l_addr;
    return library;
}

}  // namespace

struct kernel_gym_argument {
    const void *data;
    uint32_t size, is_pointer;
};

// Called by host functions, through the launcher of cuda_host.h or ascend_host.h.
extern "C" __attribute__((visibility("default"))) void kernel_gym_launch(const void *kernel, const uint32_t *shape,
                                                                         uint64_t dynamic, uint32_t line,
                                                                         uint32_t count,
                                                                         const kernel_gym_argument *given) {
    Launch launch{};
    launch.kernel = reinterpret_cast<uintptr_t>(kernel) - code_base;
    std::memcpy(launch.grid, shape, sizeof launch.grid);
    std::memcpy(launch.block, shape + 3, sizeof launch.block);
    launch.shared = dynamic;
    launch.line = line;
    launch.arguments = count;
    append(&launch, sizeof launch);
    for (uint32_t i = 0; i < count; ++i) {
        const Argument head{given[i].size, given[i].is_pointer};
        append(&head, sizeof head);
        append(given[i].data, given[i].size);
    }
    ++shared->answer.launches;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    const unsigned layers = static_cast<unsigned>(std::atoi(argv[1]));
    const int descriptor = std::atoi(argv[3]);
    void *first = mmap(nullptr, sizeof(Entered), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, kSharedAt);
    if (first == MAP_FAILED || memory == MAP_FAILED) return 2;
    shared = static_cast<Shared *>(memory);
    static Call call;
    std::memcpy(&call, &shared->call, sizeof call);
    const auto cpu_seconds = static_cast<unsigned>(std::atoi(argv[2]));
    if (const char *error = confinement::confine_for_loading(layers, cpu_seconds, {std::atoi(argv[4])}))
        leave(NOT_CONFINED, error);
    *static_cast<Entered *>(first) = 1;
    munmap(first, sizeof(Entered));  // the descriptor is closed, too: the kernel cannot take it back
    void *library = load(confinement::FIRST_KEPT);
    using Entry = int (*)(const KernelArgs *, void *);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, "kernel_launch"));
    if (!entry) leave(NOT_LOADED, "no extern \"C\" int kernel_launch(const KernelArgs *, void *)");
    const KernelArgs args = arguments(call);
    if (const char *error = confinement::confine_for_running(layers)) leave(NOT_CONFINED, error);
    shared->answer.code = entry(&args, nullptr);
    leave(RETURNED);
}
