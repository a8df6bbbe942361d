// Happens-before checks: on-chip bytes between the pipes of a core, global bytes between its copies in and out.
#include "executor.h"
#include "tokens.h"

namespace sim {

namespace {
constexpr size_t remembered_copies = 4096;  // of a core in global memory, before older ones are joined
constexpr uint64_t cache_line = 64;

std::string place(const Core &core, const Bytes &bytes) {
    return text("%s[0x%x..0x%x) (%s)", name_of_space(bytes.space), bytes.begin, bytes.end,
                core.describe(bytes.space, bytes.begin).c_str());
}

// Two copies of a pipe as one, over all bytes between them, that ends with the later one.
GlobalTouch joined(const GlobalTouch &earlier, const GlobalTouch &later) {
    const uint64_t begin = std::min(earlier.rows.begin, later.rows.begin);
    const uint64_t bytes = std::max(earlier.rows.end(), later.rows.end()) - begin;
    return {{begin, bytes, 1, bytes}, later.pipe, later.number};
}

// True if another pipe that writes global memory may still be at work.
bool others_may_write(const Core &core, uint32_t pipe) {
    for (uint32_t other : {ASC_MTE3, ASC_FIX, ASC_M})
        if (other != pipe && core.clocks.issued(other) > core.clocks.known(pipe, other)) return true;
    return false;
}

// Forgets the copies that every pipe knows to be over, and joins the older half of the others in pairs.
void shorten(const Core &core, std::deque<GlobalTouch> &touches) {
    std::deque<GlobalTouch> kept;
    bool single = false;  // the last one that was kept is not joined yet
    for (size_t i = 0; i < touches.size(); ++i) {
        const GlobalTouch &touch = touches[i];
        if (touch.number <= core.clocks.known(ASC_S, touch.pipe)) continue;
        const bool joins = single && i < touches.size() / 2 && kept.back().pipe == touch.pipe;
        if (joins) kept.back() = joined(kept.back(), touch);
        else kept.push_back(touch);
        single = !joins;
    }
    touches.swap(kept);
}
}  // namespace

void Executor::wait_for(Core &core, uint32_t pipe, uint32_t other) {
    core.clocks.join(pipe, core.clocks.snapshot(other));
    signal(other, automatic_token(other));
    wait(pipe, automatic_token(other));
}

void Executor::check_unit(uint32_t pipe, uint32_t space, const char *what) const {
    const bool cube = launch_.kind == ASC_AIC, of_cube = pipe == ASC_M || pipe == ASC_MTE1 || pipe == ASC_FIX;
    if (cube ? pipe == ASC_V : of_cube)
        diagnostics_.fail(Rule::Unit, text("%s runs on pipe %s, which a %s core does not have", what,
                                           name_of_pipe(pipe), cube ? "cube" : "vector"));
    if (cube == (space == ASC_UB))
        diagnostics_.fail(Rule::Unit, text("%s uses %s, which a %s core does not have", what, name_of_space(space),
                                           cube ? "cube" : "vector"));
}

void Executor::touch(Core &core, uint32_t pipe, const Bytes &bytes, bool write, const char *what) {
    if (bytes.begin == bytes.end) return;
    check_unit(pipe, bytes.space, what);
    if (bytes.space == ASC_UB && (core.freed[bytes.begin / 32] || core.freed[(bytes.end - 1) / 32])) {
        const QueueBuffer *buffer =
            core.queue_buffer(ASC_UB, core.freed[bytes.begin / 32] ? bytes.begin : bytes.end - 1);
        diagnostics_.fail(Rule::QueueFreed,
                          text("%s %s %s, which was freed in line %d", what, write ? "writes" : "reads",
                               place(core, bytes).c_str(), buffer ? buffer->line : 0));
    }
    LocalMemory &memory = core.memory(bytes.space);
    for (uint32_t other = ASC_V; other < ASC_PIPES; ++other) {
        if (other == pipe) continue;
        const uint32_t known = core.clocks.known(pipe, other);
        if (core.clocks.issued(other) <= known) continue;
        const bool behind_write = memory.writes(other).newest(bytes.begin, bytes.end) > known;
        const bool behind_read = write && !behind_write && memory.reads(other).newest(bytes.begin, bytes.end) > known;
        if (!behind_write && !behind_read) continue;
        if (pipe == ASC_S || options_.auto_sync) {
            wait_for(core, pipe, other);
            continue;
        }
        const char *from = name_of_pipe(other), *to = name_of_pipe(pipe);
        diagnostics_.fail(
            Rule::MissingSync,
            text("%s on pipe %s %s %s while %s may still be %s it", what, to, write ? "writes" : "reads",
                 place(core, bytes).c_str(), from, behind_write ? "writing" : "reading"),
            text("put EnQue/DeQue, SetFlag/WaitFlag<HardEvent::%s_%s> or PipeBarrier<PIPE_ALL> between them", from,
                 to));
    }
    if (pipe == ASC_S) return;  // later instructions are issued after it
    LastTouch &last = write ? memory.writes(pipe) : memory.reads(pipe);
    last.mark(memory.capacity(), bytes.begin, bytes.end, core.clocks.issued(pipe));
}

void Executor::touch(Core &core, const View &view, const Steps &steps, bool write, const char *what) {
    if (steps.elements == 0) return;
    const uint32_t blocks = static_cast<uint32_t>(divide_up(steps.lanes, view.per_block()));
    const bool solid =
        steps.contiguous || (view.block_stride <= 1 && (steps.repeats == 1 || view.repeat_stride <= blocks));
    if (solid) {
        touch(core, ASC_V, {ASC_UB, view.addr, static_cast<uint32_t>(view.addr + view.extent(steps))}, write, what);
        return;
    }
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t lanes = steps.lanes_in(repeat), step = view.block_stride == 1 ? lanes : view.per_block();
        for (uint32_t lane = 0; lane < lanes; lane += step) {
            const uint32_t begin = static_cast<uint32_t>(view.addr + view.offset(repeat, lane));
            touch(core, ASC_V, {ASC_UB, begin, begin + std::min(step, lanes - lane) * view.element}, write, what);
        }
    }
}

// The order of one core's copies in and out of the same global bytes is the author's responsibility. Only tensors that
// can be written are checked.
void Executor::order_global(Core &core, uint32_t pipe, uint32_t tensor, const Rows &rows, bool write,
                            const char *what) {
    if (!global_.writable(tensor)) return;
    const auto follow = [&](const std::deque<GlobalTouch> &touches, const char *doing) {
        for (const GlobalTouch &touch : touches) {
            if (touch.pipe == pipe || touch.number <= core.clocks.known(pipe, touch.pipe) || !touch.rows.meets(rows))
                continue;
            if (pipe == ASC_S) {
                wait_for(core, ASC_S, touch.pipe);
                continue;
            }
            const char *from = name_of_pipe(touch.pipe), *to = name_of_pipe(pipe);
            const GlobalBytes range = {tensor, rows.begin % ASC_GM_STRIDE, rows.end() - tensor * ASC_GM_STRIDE};
            diagnostics_.fail(
                Rule::GmSync,
                text("%s on pipe %s %s %s while %s may still be %s it", what, to, write ? "writes" : "reads",
                     global_.describe(range).c_str(), from, doing),
                text("put SetFlag/WaitFlag<HardEvent::%s_%s> or PipeBarrier<PIPE_ALL> between them", from, to));
        }
    };
    if (write) follow(core.copied_in, "reading");
    if (!write || others_may_write(core, pipe)) follow(core.copied_out, "writing");
    if (pipe == ASC_S) return;
    std::deque<GlobalTouch> &ours = write ? core.copied_out : core.copied_in;
    ours.push_back({rows, pipe, core.clocks.issued(pipe)});
    if (ours.size() > remembered_copies) shorten(core, ours);
}

// True if no copy of the core in these rows may still be going on.
bool Executor::in_order(const Core &core, uint32_t pipe, uint32_t tensor, const Rows &rows, bool write) const {
    if (!global_.writable(tensor)) return true;
    const auto meets = [&](const GlobalTouch &touch) {
        return touch.pipe != pipe && touch.number > core.clocks.known(pipe, touch.pipe) && touch.rows.meets(rows);
    };
    if (write && std::any_of(core.copied_in.begin(), core.copied_in.end(), meets)) return false;
    return (write && !others_may_write(core, pipe)) ||
           std::none_of(core.copied_out.begin(), core.copied_out.end(), meets);
}

void Executor::warn_of_cache(Core &core, const GlobalBytes &range, const char *what) {
    if (core.dirty_lines.empty()) return;
    const uint64_t base = range.tensor * ASC_GM_STRIDE;
    for (uint64_t line : core.dirty_lines) {
        const uint64_t begin = line * cache_line;
        if (begin >= base + range.end || begin + cache_line <= base + range.begin) continue;
        diagnostics_.warn(Rule::DataCache, text("%s touches %s, which GlobalTensor.SetValue wrote into the data cache",
                                                what, global_.describe(range).c_str()));
        return;
    }
}

}  // namespace sim
