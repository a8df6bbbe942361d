// Runs the cores of a launch as fibers: each runs until it ends or waits for others.
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "kernel_process.h"
#include "guard.h"
#include "noise.h"
#include "pointers.h"

namespace sim::kernel_process {
namespace {

enum { STACK_BYTES = NOISE_BYTES, GUARD_BYTES = 1 << 16, FLAGS = 16, MODES = 3 };
// What a core counts as work when it begins, in basic blocks, and how many bytes of the host function's stack are compared
// in the time of one.
constexpr uint64_t BLOCKS_PER_CORE = 256, BYTES_PER_BLOCK = 256;

class Stack {
public:
    Stack() {
        void *memory = map_noise();
        if (memory == MAP_FAILED) _exit(103);
        mprotect(memory, GUARD_BYTES, PROT_NONE);
        base_ = static_cast<char *>(memory);
    }
    void *base() const { return base_; }
    // A core finds nothing that another one has left.
    void wipe() { madvise(base_ + GUARD_BYTES, STACK_BYTES - GUARD_BYTES, MADV_DONTNEED); }

private:
    char *base_;
};

struct Core {
    explicit Core(uint64_t number) : words(ring().key, number) {}

    KeyedWords words;  // what its variables without a value hold
    Allocations allocations;
    ucontext_t context;
    Stack *stack = nullptr;
    guard::Range reach;  // the kernel's part of the stack
    std::optional<guard::HostStack> host;
    enum { New, Ready, AtBarrier, AtFlag, AtSet, AtEvent, Done } state = New;
    uint32_t wanted = 0;  // the flag it waits for
    uint64_t event = 0;   // the place of the event that it sets or waits for
    uint32_t sets[MODES][FLAGS] = {}, waits[FLAGS] = {};
};

struct Launch {
    std::vector<std::unique_ptr<Core>> cores;
    uint32_t blocks, kind, lanes;  // lanes: cores that run each block
    void (*body)(void *);
    void *closure;
    int32_t line;
    guard::Range own, host;  // the host function's stack, and the part of it that cores may read
    std::vector<char> kept;  // a copy of that part
    uint32_t current = 0;
    std::map<uint64_t, bool> events;  // set by IBSet and not waited for, by place
    ucontext_t scheduler;
};

Launch *running;
std::vector<Stack *> idle_stacks;
uint64_t next_core = 1;  // of all launches; 0 is the host function

Core &current() { return *running->cores[running->current]; }

[[gnu::noinline]] void enter(Core &core) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(core.stack->base()) + GUARD_BYTES;
    core.reach = {begin, guard::stack_pointer()};
    guard::stack(core.reach, &*core.host, core.words);
    const auto body = running->body;
    void *const closure = running->closure;
    forget();
    ASC_CLEAR_REGISTERS;
    body(closure);
    ASC_CLEAR_REGISTERS;
}

void core_main() {
    enter(current());
    wire::core_end(running->line);
    current().state = Core::Done;
    setcontext(&running->scheduler);
}

void yield_as(decltype(Core::state) state) {
    Core &core = current();
    core.state = state;
    swapcontext(&core.context, &running->scheduler);
    ASC_CLEAR_REGISTERS;  // of what other cores have left in them
}

void prepare(Core &core) {
    if (idle_stacks.empty()) {
        core.stack = new Stack;
    } else {
        core.stack = idle_stacks.back();
        idle_stacks.pop_back();
    }
    getcontext(&core.context);
    core.context.uc_stack.ss_sp = core.stack->base();
    core.context.uc_stack.ss_size = STACK_BYTES;
    core.context.uc_link = nullptr;
    makecontext(&core.context, core_main, 0);
}

// How often a flag was raised for a core. A flag is raised when every member of its group has set it. Mode 0 groups all
// cores, mode 1 the vector cores of one block; mode 2 pairs them with the cube core, which runs no kernel code in the
// simulator.
uint32_t raised(uint32_t index, uint32_t flag) {
    const uint32_t lanes = running->lanes, first = index / lanes * lanes;
    uint32_t all = UINT32_MAX, group = UINT32_MAX;
    for (const auto &core : running->cores) all = std::min(all, core->sets[0][flag]);
    for (uint32_t i = first; i < first + lanes; ++i) group = std::min(group, running->cores[i]->sets[1][flag]);
    return all + group;
}

bool may_run(uint32_t index, bool barrier_complete) {
    Core &core = *running->cores[index];
    switch (core.state) {
        case Core::New:
        case Core::Ready: return true;
        case Core::AtBarrier: return barrier_complete;
        case Core::AtFlag: return raised(index, core.wanted) > core.waits[core.wanted];
        case Core::AtSet: return !running->events[core.event];
        case Core::AtEvent: return running->events[core.event];
        case Core::Done: return false;
    }
    return false;
}

void run_core(uint32_t index) {
    Core &core = *running->cores[index];
    running->current = index;
    if (core.state == Core::New) {
        prepare(core);
        progress.blocks += BLOCKS_PER_CORE;
        core.host.emplace(running->host);
        wire::core_begin(index, running->line);
    } else {
        wire::core_resume(index, running->line);
    }
    if (core.state == Core::AtFlag) ++core.waits[core.wanted];
    core.state = Core::Ready;
    guard::stack(core.reach, &*core.host, core.words);
    swapcontext(&running->scheduler, &core.context);
    pointers::flush();
    progress.blocks += running->kept.size() / BYTES_PER_BLOCK;
    if (std::memcmp(running->kept.data(), reinterpret_cast<const void *>(running->host.begin), running->kept.size()))
        guard::refuse();
    if (core.state == Core::Done) {
        core.stack->wipe();
        idle_stacks.push_back(core.stack);
        core.allocations = {};
        core.host.reset();
    }
}

uint32_t count(decltype(Core::state) state) {
    return static_cast<uint32_t>(std::count_if(running->cores.begin(), running->cores.end(),
                                               [&](const auto &core) { return core->state == state; }));
}

// Runs every runnable core once; returns whether any ran.
bool run_round() {
    const bool barrier_complete = count(Core::AtBarrier) == running->cores.size();
    bool any = false;
    std::vector<bool> may(running->cores.size());
    for (uint32_t i = 0; i < may.size(); ++i) may[i] = may_run(i, barrier_complete);
    for (uint32_t i = 0; i < may.size(); ++i) {
        // A flag may have been raised or consumed since `may` was computed; a complete barrier releases all cores.
        const auto state = running->cores[i]->state;
        const bool waits = state == Core::AtFlag || state == Core::AtSet || state == Core::AtEvent;
        if (waits ? !may_run(i, false) : !may[i]) continue;
        run_core(i);
        any = true;
    }
    return any;
}

}  // namespace

Allocations &allocations(int32_t line) {
    if (!running) misuse(line, "only a kernel can do this, not the host function");
    return current().allocations;
}

KeyedWords &host_words() {
    static KeyedWords words(ring().key, 0);
    return words;
}

bool in_core() { return running != nullptr; }
uint64_t core_kind() { return running && running->kind == ASC_AIC ? ASC_AIC : ASC_AIV; }
uint64_t cores_per_block() { return running ? running->lanes : 1; }

}  // namespace sim::kernel_process

using namespace sim::kernel_process;

uint32_t front::block_index() { return running ? running->current : 0; }
uint32_t front::block_count() { return running ? running->blocks : 1; }
uint32_t front::sub_block_index() { return running ? running->current % running->lanes : 0; }

[[gnu::noinline]] static void run_launch(uint32_t blocks, uint32_t core_kind, void (*body)(void *), void *closure,
                                         int32_t line, uintptr_t host) {
    if (running) misuse(line, "a kernel cannot launch a kernel; call it from kernel_launch");
    wire::launch_begin(blocks, core_kind, line);
    if (!is_function(reinterpret_cast<uintptr_t>(body))) guard::refuse();
    if (blocks == 0 || blocks > 65535) misuse(line, "a launch takes 1 to 65535 blocks");
    Launch launch;
    launch.blocks = blocks;
    launch.kind = core_kind;
    launch.lanes = core_kind == ASC_MIX ? 2 : 1;
    launch.body = body;
    launch.closure = closure;
    launch.line = line;
    for (uint32_t i = 0; i < blocks * launch.lanes; ++i) launch.cores.push_back(std::make_unique<Core>(next_core++));
    launch.own = guard::own_stack();
    launch.host = {host, launch.own.end};
    launch.kept.assign(reinterpret_cast<const char *>(launch.host.begin),
                       reinterpret_cast<const char *>(launch.host.end));
    const uint64_t before = progress.blocks;
    allow_blocks(before - progress.blocks_of_cores);
    running = &launch;
    while (count(Core::Done) < launch.cores.size()) {
        if (run_round()) continue;
        wire::stuck(static_cast<uint32_t>(launch.cores.size() - count(Core::Done)), line);
        give_up(line);
    }
    guard::stack(launch.own, nullptr, host_words());
    running = nullptr;
    progress.blocks_of_cores += progress.blocks - before;
    allow_blocks(progress.blocks_of_cores);
    wire::launch_end(line);
}

extern "C" void asc_launch(uint32_t blocks, uint32_t core_kind, void (*body)(void *), void *closure, int32_t line) {
    const Forgetting after;
    run_launch(blocks, core_kind, body, closure, line, reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()));
}

void front::sync_all(int32_t line) {
    allocations(line);
    wire::sync_point(line);
    yield_as(Core::AtBarrier);
}

void front::soft_sync_all(asc_global workspace, asc_local ub, uint32_t used, int32_t line) {
    allocations(line);
    wire::soft_sync_point(workspace, ub, used, line);
    yield_as(Core::AtBarrier);
}

void front::cross_core_set(uint32_t mode, uint32_t pipe, uint32_t flag, int32_t line) {
    allocations(line);
    wire::cross_set(mode, pipe, flag, line);
    if (mode < MODES && flag < FLAGS) ++current().sets[mode][flag];
}

void front::cross_core_wait(uint32_t flag, int32_t line) {
    allocations(line);
    if (flag >= FLAGS) misuse(line, "CrossCoreWaitFlag takes flags 0 to 10");
    Core &core = current();
    core.wanted = flag;
    if (raised(running->current, flag) > core.waits[flag]) ++core.waits[flag];
    else yield_as(Core::AtFlag);
    wire::cross_wait(flag, line);
}

// An event is set when it was waited for since it was last set.
void front::block_event_set(asc_global place, asc_local ub, asc_event event, int32_t line) {
    allocations(line);
    current().event = place;
    if (running->events[place]) yield_as(Core::AtSet);
    wire::block_set(place, ub, event, line);
    running->events[place] = true;
}

void front::block_event_wait(asc_global place, asc_local ub, asc_event event, int32_t line) {
    allocations(line);
    current().event = place;
    if (!running->events[place]) yield_as(Core::AtEvent);
    running->events[place] = false;
    wire::block_wait(place, ub, event, line);
}
