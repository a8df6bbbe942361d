#include "front_process.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>

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
    if (!entry) fail(ring, NOT_LOADED, "no extern \"C\" int kernel_launch(const KernelArgs *, void *)");
    if (const char *error = confinement::confine_for_running(layers)) fail(ring, NOT_CONFINED, error);
    const KernelArgs args = arguments(ring.call);
    wire::returned(entry(&args, nullptr), 0);
    leave();
}

}  // namespace sim::front
