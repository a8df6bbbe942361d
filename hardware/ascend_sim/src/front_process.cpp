#include "front_process.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

#include "../../confinement/jail.h"
#include "front.h"

namespace sim::front {
namespace {

using Entry = int (*)(const KernelArgs *, void *);

[[noreturn]] void fail(Ring &ring, ExitStatus status, const char *why) {
    std::snprintf(ring.error, sizeof ring.error, "%s", why);
    _exit(status);
}

void *load(Ring &ring, int code) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", code);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(ring, NOT_LOADED, dlerror());
    link_map *map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) cover_from(map->l_addr);
    return library;
}

// A read-only copy of the call with unmapped memory around it: what the ring says beside the arguments (which run this
// is, what has been covered) is no business of the kernel, and an index below or above its arguments ends it.
const CallArguments &set_apart(const CallArguments &call) {
    constexpr size_t page = 65536;   // the largest page size of the machines we know
    constexpr size_t room = (sizeof(CallArguments) + page - 1) / page * page;
    void *base = mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return call;
    char *middle = static_cast<char *>(base) + page;
    if (mprotect(middle, room, PROT_READ | PROT_WRITE) != 0) return call;
    auto *copy = reinterpret_cast<CallArguments *>(middle);
    std::memcpy(copy, &call, sizeof call);
    copy->records_only = copy->cpu_seconds = 0;
    copy->seed = copy->budget = 0;
    mprotect(middle, room, PROT_READ);
    return *copy;
}

KernelArgs arguments(const CallArguments &call) {
    KernelArgs args{};
    args.abi = 1;
    args.num_inputs = static_cast<int32_t>(call.num_inputs);
    args.num_outputs = static_cast<int32_t>(call.num_outputs);
    args.num_ints = static_cast<int32_t>(call.num_ints);
    args.num_floats = static_cast<int32_t>(call.num_floats);
    args.inputs = call.tensors;
    args.outputs = call.tensors + call.num_inputs;
    args.ints = call.ints;
    args.floats = call.floats;
    args.workspace = reinterpret_cast<void *>(call.workspace_address);
    args.workspace_bytes = call.workspace_bytes;
    return args;
}

}  // namespace

void run_kernel(Ring &ring, unsigned layers, int code) {
    int kept = -1;
    if (const char *error = confinement::confine_for_loading(layers, ring.call.cpu_seconds, code, &kept))
        fail(ring, NOT_CONFINED, error);
    attach(&ring);
    void *library = load(ring, kept);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, "kernel_launch"));
    const KernelArgs args = arguments(set_apart(ring.call));
    if (!entry) fail(ring, NOT_LOADED, "no extern \"C\" int kernel_launch(const KernelArgs *, void *)");
    if (const char *error = confinement::confine_for_running(layers)) fail(ring, NOT_CONFINED, error);
    wire::returned(entry(&args, nullptr), 0);
    leave();
}

}  // namespace sim::front
