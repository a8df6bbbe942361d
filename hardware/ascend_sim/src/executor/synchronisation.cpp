// Flags and barriers between pipes, synchronisation between cores.
#include "executor.h"
#include "tokens.h"

namespace sim {

namespace {
constexpr uint32_t cross_flags = 11, cross_limit = 15;
constexpr uint32_t most_events = 1 << 16;             // of IBSet in a launch; each holds what its core knows
constexpr uint32_t state_bytes = 32;                  // of a core or an event in a workspace
constexpr uint32_t polled = kind_of_atomic(0xff, 0);  // accesses to workspaces meet each other, and nothing else
constexpr int granted_ids = 6;                        // of eight; the framework uses the others
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

void Executor::sync_point(int32_t line) { meet(running(line), {}); }

// Each core adds one to its state in the workspace and looks at those of all others.
void Executor::soft_sync_point(asc_global workspace, asc_local ub, uint32_t used, int32_t line) {
    Core &core = running(line);
    const char *what = "SyncAll with a workspace";
    if (used && used != launch_.instances)
        diagnostics_.fail(Rule::SyncDeadlock, text("%s of %u blocks in a launch of %u", what, used, launch_.instances));
    const uint64_t own = state_bytes * core.id;
    const uint32_t count = poll(core, workspace, ub, uint64_t{state_bytes} * launch_.instances, own, what);
    post(core, workspace, ub, own, count + 1, what);
    meet(core, {workspace, count});
}

void Executor::meet(Core &core, const Meeting &meeting) {
    core.clocks.join_all();
    emit(instr(Kind::SyncAll, ASC_S));
    if (launch_.ended) {
        diagnostics_.fail(Rule::SyncDeadlock,
                          text("core %u waits in SyncAll for %u blocks that have ended", core.id, launch_.ended));
    }
    check_all_run("SyncAll");
    if (launch_.waiting == 0) launch_.meeting = meeting;
    if (meeting.workspace != launch_.meeting.workspace || meeting.count != launch_.meeting.count) {
        diagnostics_.fail(
            Rule::SyncDeadlock,
            text("core %u is in SyncAll with another workspace or count than the cores before it", core.id),
            "all cores use one workspace, which holds zeros before");
    }
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

// ---- workspaces of IBSet, IBWait and the soft SyncAll --------------------------------------------------------------

// Copies states out of a workspace into UB, as often as it takes; this core's is at byte `own`. Other cores change
// theirs at any time, so the workspace is ordered before by other means.
uint32_t Executor::poll(Core &core, asc_global workspace, const asc_local &ub, uint64_t bytes, uint64_t own,
                        const char *what) {
    const Bytes local = ub_bytes(ub, bytes, 32, what, "ubWorkspace");
    drain(core);
    core.clocks.issue(ASC_MTE2);
    Rows rows = {0, bytes, 1, bytes};
    touch_global(core, ASC_MTE2, workspace, rows, sizeof(int32_t), true, polled, what);
    touch(core, ASC_MTE2, local, true, what);
    emit_copy(core, Kind::CopyIn, ASC_MTE2, ub, workspace, {0, bytes, 1, bytes}, ASC_I32, 0);
    drain(core);
    if (!options_.compute) return 0;
    const GlobalBytes range = global_.locate(workspace, bytes, true, what);
    if (!global_.all_valid(range)) {
        diagnostics_.fail(Rule::Uninitialised,
                          text("%s reads %s, which was never written", what, global_.describe(range).c_str()),
                          "write zeros there, in an earlier launch or by one core before SyncAll()");
    }
    LocalMemory &memory = core.memory(ASC_UB);
    global_.load(range, memory.data(local.begin, local.end), memory.valid(local.begin, local.end));
    uint32_t value;
    std::memcpy(&value, memory.data(local.begin, local.end) + own, sizeof value);
    return value;
}

// Copies the state at byte `own` back with another value.
void Executor::post(Core &core, asc_global workspace, const asc_local &ub, uint64_t own, uint32_t value,
                    const char *what) {
    const uint32_t begin = ub.addr + static_cast<uint32_t>(own), end = begin + state_bytes;
    core.clocks.issue(ASC_MTE3);
    touch(core, ASC_MTE3, {ASC_UB, begin, end}, false, what);
    emit_copy(core, Kind::CopyOut, ASC_MTE3, {begin, state_bytes, ASC_UB}, workspace + own,
              {0, state_bytes, 1, state_bytes}, ASC_I32, 0);
    drain(core);
    if (!options_.compute) return;
    LocalMemory &memory = core.memory(ASC_UB);
    std::memcpy(memory.data(begin, end), &value, sizeof value);
    global_.store(global_.locate(workspace + own, state_bytes, true, what), memory.data(begin, end),
                  memory.valid(begin, end));
}

Executor::Event &Executor::event_at(asc_global place, const asc_event &event, const char *what) {
    if (event.block >= launch_.instances || event.event >= event_ids)
        diagnostics_.fail(Rule::FlagId, text("%s of block %u, event %u", what, event.block, event.event),
                          "blocks are those of the launch, event ids are 0 to 7");
    check_all_run(what);
    const uint32_t number = static_cast<uint32_t>(launch_.events.size());
    Event &found = launch_.events.try_emplace(place, number).first->second;
    if (number >= most_events && launch_.events.size() > number)
        diagnostics_.fail(Rule::FlagTwice, text("%s has more than %u places for events", what, most_events));
    return found;
}

// Waits until the event is `from` and changes it. Each change has a token, and the next one comes after it.
void Executor::change_event(Core &core, Event &event, asc_global place, const asc_local &ub, bool from,
                            const char *what) {
    overhead(Call::Flag);
    if (!event.stamp.empty()) wait(ASC_S, event_token(2 * event.number + from));
    const uint32_t value = poll(core, place, ub, state_bytes, 0, what);
    if (options_.compute && value != from) {
        diagnostics_.fail(Rule::Uninitialised,
                          text("%s waits for %u in its workspace, which holds %u", what, from, value),
                          "the workspace holds zeros before, and only IBSet and IBWait change it");
    }
    post(core, place, ub, 0, !from, what);
    order_.acquire(core.id, event.stamp);
    event.set = !from;
    event.stamp = order_.release(core.id, core.clocks, core.clocks.snapshot(ASC_S));
    signal(ASC_S, event_token(2 * event.number + event.set));
}

// The block's writes are in global memory before the other block sees the event.
void Executor::block_set(asc_global place, asc_local ub, asc_event event, int32_t line) {
    Core &core = running(line);
    Event &found = event_at(place, event, "IBSet");
    if (found.set)
        diagnostics_.fail(Rule::FlagTwice, text("IBSet of block %u, event %u, which is set", event.block, event.event));
    change_event(core, found, place, ub, false, "IBSet");
}

void Executor::block_wait(asc_global place, asc_local ub, asc_event event, int32_t line) {
    Core &core = running(line);
    Event &found = event_at(place, event, "IBWait");
    if (!found.set)
        diagnostics_.fail(Rule::FlagUnset,
                          text("IBWait for block %u, event %u, which was never set", event.block, event.event));
    change_event(core, found, place, ub, true, "IBWait");
}

}  // namespace sim
