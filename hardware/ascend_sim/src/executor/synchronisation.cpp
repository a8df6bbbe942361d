// Flags and barriers between pipes, synchronisation between cores.
#include "executor.h"
#include "tokens.h"

namespace sim {

namespace {
constexpr uint32_t cross_flags = 11, cross_limit = 15;
constexpr uint32_t most_events = 1 << 16;  // of IBSet in a launch; each holds what its core knows
constexpr int granted_ids = 6;             // of eight; the framework uses the others
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
    check_all_run("SyncAll");
    core.waiting = true;
    core_ = nullptr;
    diagnostics_.core = -1;
    if (++launch_.waiting < launch_.instances) return;
    launch_.waiting = 0;
    for (auto &other : cores_) other->waiting = false;
    order_.meet();
}

// ---- flags between cores -------------------------------------------------------------------------------------------

void Executor::check_all_run(const char *what) const {
    if (launch_.instances <= physical_cores()) return;
    diagnostics_.fail(Rule::SyncDeadlock,
                      text("%s with %u blocks on %u cores", what, launch_.instances, physical_cores()));
}

// Waits for all pipes, on the timeline as in the clocks.
void Executor::drain(Core &core) {
    core.clocks.join_all();
    emit(instr(Kind::Barrier, ASC_ALL));
}

// Mode 0 groups all cores, mode 1 the vector cores of a block.
uint32_t Executor::cross_key(uint32_t mode, uint32_t flag, uint32_t core) const {
    const uint32_t lanes = launch_.instances / launch_.blocks, group = mode == 0 ? 0 : core / lanes;
    return (mode * cross_flags + flag) * launch_.instances + group;
}

uint32_t Executor::complete_rounds(uint32_t mode, uint32_t flag, uint32_t core) const {
    const auto crossed = launch_.crossed.find(cross_key(mode, flag, core));
    if (crossed == launch_.crossed.end()) return 0;
    const uint32_t members = mode == 0 ? launch_.instances : launch_.instances / launch_.blocks;
    if (crossed->second.sets.size() < members) return 0;
    uint32_t least = UINT32_MAX;
    for (const auto &[member, sets] : crossed->second.sets) least = std::min(least, sets);
    return least;
}

void Executor::cross_set(uint32_t mode, uint32_t pipe, uint32_t flag, int32_t line) {
    Core &core = running(line);
    if (mode > 2 || pipe >= ASC_PIPES) diagnostics_.fail(Rule::Protocol, "CrossCoreSetFlag");
    if (flag >= cross_flags)
        diagnostics_.fail(Rule::FlagId, text("CrossCoreSetFlag(%u)", flag), "cross-core flag ids are 0 to 10");
    check_all_run("CrossCoreSetFlag");
    overhead(Call::Flag);
    if (mode == 2) return;  // its partner is the cube core, which runs no code of the author in a mixed launch
    const uint32_t key = cross_key(mode, flag, core.id);
    CrossFlag &crossed = launch_.crossed[key];
    uint32_t &sets = crossed.sets[core.id];
    if (sets - crossed.waits[core.id] >= cross_limit) {
        diagnostics_.fail(Rule::FlagTwice,
                          text("CrossCoreSetFlag(%u) is set more than %u times without a wait", flag, cross_limit));
    }
    const uint32_t round = sets % CrossFlag::rounds;
    Instr record = instr(Kind::Signal, pipe);
    record.token = shared_token(key * CrossFlag::rounds + round);
    record.a = sets < crossed.begun;  // not the first of this round
    if (!record.a) crossed.stamps[round].clear();
    CoreOrder::join(crossed.stamps[round], order_.release(core.id, core.clocks, core.clocks.snapshot(pipe)));
    crossed.begun = std::max(crossed.begun, ++sets);
    emit(record);
}

void Executor::cross_wait(uint32_t flag, int32_t line) {
    Core &core = running(line);
    if (flag >= cross_flags)
        diagnostics_.fail(Rule::FlagId, text("CrossCoreWaitFlag(%u)", flag), "cross-core flag ids are 0 to 10");
    check_all_run("CrossCoreWaitFlag");
    for (uint32_t mode = 0; mode < 2; ++mode) {
        const uint32_t rounds = complete_rounds(mode, flag, core.id), key = cross_key(mode, flag, core.id);
        if (rounds == 0 || launch_.crossed[key].waits[core.id] >= rounds) continue;
        const uint32_t round = launch_.crossed[key].waits[core.id]++ % CrossFlag::rounds;
        order_.acquire(core.id, launch_.crossed[key].stamps[round]);
        overhead(Call::Flag);
        wait(ASC_S, shared_token(key * CrossFlag::rounds + round));
        return drain(core);
    }
    diagnostics_.fail(Rule::FlagUnset, text("CrossCoreWaitFlag(%u) was never set", flag));
}

// The block's writes are in global memory before the other block sees the event.
void Executor::block_set(uint32_t block, uint32_t event, int32_t line) {
    Core &core = running(line);
    if (block >= launch_.instances || event >= event_ids)
        diagnostics_.fail(Rule::FlagId, text("IBSet of block %u, event %u", block, event),
                          "blocks are those of the launch, event ids are 0 to 7");
    check_all_run("IBSet");
    if (launch_.tokens - launch_.free_tokens.size() >= most_events)
        diagnostics_.fail(Rule::FlagTwice, text("%u events of IBSet are waiting for an IBWait", most_events));
    uint32_t number = launch_.tokens;
    if (launch_.free_tokens.empty()) {
        ++launch_.tokens;
    } else {
        number = launch_.free_tokens.back();
        launch_.free_tokens.pop_back();
    }
    drain(core);
    overhead(Call::Flag);
    launch_.events[static_cast<uint64_t>(block) << 32 | event].push_back(
        {number, order_.release(core.id, core.clocks, core.clocks.snapshot(ASC_S))});
    signal(ASC_S, event_token(number));
}

void Executor::block_wait(uint32_t block, uint32_t event, int32_t line) {
    Core &core = running(line);
    check_all_run("IBWait");
    const auto set = launch_.events.find(static_cast<uint64_t>(block) << 32 | event);
    if (set == launch_.events.end() || set->second.empty())
        diagnostics_.fail(Rule::FlagUnset, text("IBWait for block %u, event %u, which was never set", block, event));
    const Event first = set->second.front();
    set->second.pop_front();
    launch_.free_tokens.push_back(first.token);
    order_.acquire(core.id, first.stamp);
    overhead(Call::Flag);
    wait(ASC_S, event_token(first.token));
    drain(core);
}

}  // namespace sim
