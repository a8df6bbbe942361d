// Flags and barriers between pipes, synchronisation between cores.
#include "executor.h"
#include "tokens.h"

namespace sim {

namespace {
constexpr uint32_t cross_flags = 11, cross_limit = 15;
constexpr int granted_ids = 6;  // of eight; the framework uses the others
}  // namespace

void Executor::set_flag(uint32_t source, uint32_t destination, int32_t id, int32_t line) {
    Core &core = running(line);
    if (source >= ASC_PIPES || destination >= ASC_PIPES)
        diagnostics_.fail(Rule::Protocol, "SetFlag between unknown pipes");
    const char *from = name_of_pipe(source), *to = name_of_pipe(destination);
    if (id < 0 || id >= event_ids) diagnostics_.fail(Rule::FlagId, text("SetFlag<HardEvent::%s_%s>(%d)", from, to, id));
    if (id >= granted_ids) diagnostics_.warn(Rule::ReservedEvent, text("SetFlag<HardEvent::%s_%s>(%d)", from, to, id));
    Flag &flag = core.flags[source][destination][id];
    if (flag.set) {
        diagnostics_.fail(Rule::FlagTwice,
                          text("SetFlag<HardEvent::%s_%s>(%d) is set since line %d", from, to, id, flag.line));
    }
    flag.set = true;
    flag.line = line;
    flag.clock = core.clocks.snapshot(source);
    overhead(Call::Flag);
    signal(source, flag_token(source, destination, static_cast<uint32_t>(id)));
}

void Executor::wait_flag(uint32_t source, uint32_t destination, int32_t id, int32_t line) {
    Core &core = running(line);
    if (source >= ASC_PIPES || destination >= ASC_PIPES)
        diagnostics_.fail(Rule::Protocol, "WaitFlag between unknown pipes");
    const char *from = name_of_pipe(source), *to = name_of_pipe(destination);
    if (id < 0 || id >= event_ids)
        diagnostics_.fail(Rule::FlagId, text("WaitFlag<HardEvent::%s_%s>(%d)", from, to, id));
    Flag &flag = core.flags[source][destination][id];
    if (!flag.set)
        diagnostics_.fail(Rule::FlagUnset, text("WaitFlag<HardEvent::%s_%s>(%d) was never set", from, to, id));
    flag.set = false;
    core.clocks.join(destination, flag.clock);
    overhead(Call::Flag);
    wait(destination, flag_token(source, destination, static_cast<uint32_t>(id)));
}

void Executor::barrier(uint32_t pipe, int32_t line) {
    Core &core = running(line);
    if (pipe >= ASC_PIPES && pipe != ASC_ALL) diagnostics_.fail(Rule::Protocol, "PipeBarrier on an unknown pipe");
    if (pipe == ASC_ALL) core.clocks.join_all();
    emit(instr(Kind::Barrier, pipe));
}

void Executor::sync_point(int32_t line) {
    Core &core = running(line);
    core.clocks.join_all();
    emit(instr(Kind::SyncAll, ASC_S));
    if (launch_.ended) {
        diagnostics_.fail(Rule::SyncDeadlock,
                          text("core %u waits in SyncAll for %u blocks that have ended", core.id, launch_.ended));
    }
    if (launch_.instances > options_.vector_cores) {
        diagnostics_.fail(Rule::SyncDeadlock,
                          text("SyncAll with %u blocks on %u cores", launch_.instances, options_.vector_cores));
    }
    core.waiting = true;
    core_ = nullptr;
    diagnostics_.core = -1;
    if (++launch_.waiting < launch_.instances) return;
    launch_.waiting = 0;
    for (auto &other : cores_) other->waiting = false;
    ++epoch_;
    lines_written_.clear();
}

void Executor::cross_set(uint32_t mode, uint32_t pipe, uint32_t flag, int32_t line) {
    running(line);
    if (mode > 2 || pipe >= ASC_PIPES) diagnostics_.fail(Rule::Protocol, "CrossCoreSetFlag");
    if (flag >= cross_flags)
        diagnostics_.fail(Rule::FlagId, text("CrossCoreSetFlag(%u)", flag), "cross-core flag ids are 0 to 10");
    if (++launch_.crossed[flag] > cross_limit * launch_.instances) {
        diagnostics_.fail(Rule::FlagTwice,
                          text("CrossCoreSetFlag(%u) is set more than %u times without a wait", flag, cross_limit));
    }
    overhead(Call::Flag);
}

void Executor::cross_wait(uint32_t flag, int32_t line) {
    Core &core = running(line);
    if (flag >= cross_flags)
        diagnostics_.fail(Rule::FlagId, text("CrossCoreWaitFlag(%u)", flag), "cross-core flag ids are 0 to 10");
    if (launch_.crossed[flag] == 0)
        diagnostics_.fail(Rule::FlagUnset, text("CrossCoreWaitFlag(%u) was never set", flag));
    // The cores that a flag orders depend on its mode. The simulator assumes that it orders all of them: this may miss
    // races, but never reports a false one.
    core.clocks.join_all();
    ++epoch_;
    overhead(Call::Flag);
}

void Executor::block_set(uint32_t block, uint32_t event, int32_t line) {
    Core &core = running(line);
    if (block >= launch_.instances || event >= event_ids)
        diagnostics_.fail(Rule::FlagId, text("IBSet of block %u, event %u", block, event),
                          "blocks are those of the launch, event ids are 0 to 7");
    ++launch_.events[static_cast<uint64_t>(block) << 32 | event];
    core.clocks.join_all();  // the block's writes are in global memory before the other block sees the event
    overhead(Call::Flag);
}

void Executor::block_wait(uint32_t block, uint32_t event, int32_t line) {
    Core &core = running(line);
    uint32_t &set = launch_.events[static_cast<uint64_t>(block) << 32 | event];
    if (set == 0)
        diagnostics_.fail(Rule::FlagUnset, text("IBWait for block %u, event %u, which was never set", block, event));
    --set;
    core.clocks.join_all();
    ++epoch_;  // as with flags between cores: assumed to order all of them
    overhead(Call::Flag);
}

}  // namespace sim
