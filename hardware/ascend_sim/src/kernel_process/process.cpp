#include "process.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

#include "jail.h"
#include "kernel_process.h"
#include "guard.h"
#include "noise.h"
#include "random_places.h"

namespace sim::kernel_process {
namespace {

using Entry = int (*)(const KernelArgs *, void *);

enum : size_t { STACK_BYTES = 8 << 20 };  // the limit set by the jail

[[noreturn]] void fail(Ring &ring, ExitStatus status, const char *why) {
    std::snprintf(ring.error, sizeof ring.error, "%s", why);
    _exit(status);
}

// The memory range of the kernel's image. The binary screen restricts which parts of it are writable.
int note_constants(dl_phdr_info *info, size_t, void *map) {
    if (info->dlpi_addr != static_cast<link_map *>(map)->l_addr) return 0;
    uintptr_t end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            end = std::max<uintptr_t>(end, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
    guard::constants({info->dlpi_addr, info->dlpi_addr + end});
    return 1;
}

void *load(Ring &ring, int code) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", code);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(ring, NOT_LOADED, dlerror());
    link_map *map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) cover_from(map->l_addr);
    if (map) dl_iterate_phdr(note_constants, map);
    return library;
}

// What a kernel may read of its call. Tensors come last: the kernel's are followed by nothing that it may read.
struct Handed {
    KernelArgs args;
    int64_t ints[CallArguments::MAX_SCALARS];
    double floats[CallArguments::MAX_SCALARS];
    KernelTensor tensors[CallArguments::MAX_TENSORS];
};

KernelArgs arguments(const CallArguments &call, const Handed &handed) {
    KernelArgs args{};
    args.abi = 1;
    args.num_inputs = static_cast<int32_t>(call.num_inputs);
    args.num_outputs = static_cast<int32_t>(call.num_outputs);
    args.num_ints = static_cast<int32_t>(call.num_ints);
    args.num_floats = static_cast<int32_t>(call.num_floats);
    args.inputs = handed.tensors;
    args.outputs = handed.tensors + call.num_inputs;
    args.ints = handed.ints;
    args.floats = handed.floats;
    args.workspace = reinterpret_cast<void *>(call.workspace_address);
    args.workspace_bytes = call.workspace_bytes;
    return args;
}

// The kernel's arguments: a read-only copy surrounded by unmapped memory. The ring still has those of earlier calls
// behind them, which are not copied.
const KernelArgs *hand_over(const CallArguments &call) {
    constexpr size_t page = 65536;  // the largest page size of the supported machines
    constexpr size_t room = (sizeof(Handed) + page - 1) / page * page;
    void *base = mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *middle = static_cast<char *>(base) + page;
    if (base == MAP_FAILED || mprotect(middle, room, PROT_READ | PROT_WRITE) != 0) return nullptr;
    auto *handed = reinterpret_cast<Handed *>(middle);
    std::copy_n(call.ints, call.num_ints, handed->ints);
    std::copy_n(call.floats, call.num_floats, handed->floats);
    const KernelTensor *end = std::copy_n(call.tensors, call.num_inputs + call.num_outputs, handed->tensors);
    handed->args = arguments(call, *handed);
    mprotect(middle, room, PROT_READ);
    guard::arguments({reinterpret_cast<uintptr_t>(handed), reinterpret_cast<uintptr_t>(end)});
    return &handed->args;
}

[[gnu::noinline]] int enter(Entry entry, const KernelArgs *args) {
    const uintptr_t top = guard::stack_pointer();
    guard::stack({top - STACK_BYTES, top}, nullptr, host_words());
    forget();
    ASC_CLEAR_REGISTERS;
    const int code = entry(args, nullptr);
    ASC_CLEAR_REGISTERS;
    return code;
}

}  // namespace

void run_kernel(Ring &shared, unsigned layers, int code, int noise, volatile uint32_t *entered) {
    void *moved = move_anywhere(&shared, sizeof(Ring));
    if (moved == MAP_FAILED) fail(shared, NOT_CONFINED, "no place for the ring");
    Ring &ring = *static_cast<Ring *>(moved);
    if (const char *error = confinement::confine_for_loading(layers, ring.call.cpu_seconds, {code, noise}))
        fail(ring, NOT_CONFINED, error);
    const KernelArgs *args = hand_over(ring.call);
    if (!args) fail(ring, NOT_CONFINED, "no memory for the arguments");
    attach(&ring);
    if (!use_noise(confinement::FIRST_KEPT + 1)) fail(ring, NOT_CONFINED, "no memory for the noise");
    *entered = 1;
    munmap(const_cast<uint32_t *>(entered), sizeof *entered);
    void *library = load(ring, confinement::FIRST_KEPT);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, "kernel_launch"));
    if (!entry) fail(ring, NOT_LOADED, "no extern \"C\" int kernel_launch(const KernelArgs *, void *)");
    if (const char *error = confinement::confine_for_running(layers)) fail(ring, NOT_CONFINED, error);
    wire::returned(enter(entry, args), 0);
    leave();
}

}  // namespace sim::kernel_process
