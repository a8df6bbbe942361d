// Loops of scalar accesses. A loop whose accesses break no rule and wait for nothing is executed as a whole; any other is
// executed access by access, so that faults and waits are those of single accesses.
#include "executor.h"
#include "numerics/dtype.h"

namespace sim {

namespace {

constexpr uint32_t most_accesses = 1u << 16;
constexpr uint64_t cache_line = 64, no_line = ~0ull;
const char *const names[2][2] = {{"GetValue", "SetValue"}, {"GetValue global", "SetValue global"}};
const char *const calls[2][2] = {{"GetValue", "SetValue"}, {"GlobalTensor.GetValue", "GlobalTensor.SetValue"}};

// The bytes from the first to the last that the accesses of a slot touch.
struct Span { uint64_t begin = 0, end = 0; };

Span span_of(const ScalarLoop &loop, uint32_t number, uint32_t element) {
    const uint64_t first = loop.slots[number].where, last = loop.where((loop.times(number) - 1) * loop.period + number);
    return {std::min(first, last), std::max(first, last) + element};
}

bool side_by_side(const ScalarLoop::Slot &slot) {
    const int64_t element = bytes_of_dtype(slot.dtype);
    return slot.step == element || slot.step == -element || slot.step == 0;
}

// Copies of the sizes that elements have.
void store(uint8_t *to, uint64_t bits, uint32_t element) {
    switch (element) {
        case 1: std::memcpy(to, &bits, 1); break;
        case 2: std::memcpy(to, &bits, 2); break;
        case 4: std::memcpy(to, &bits, 4); break;
        default: std::memcpy(to, &bits, 8); break;
    }
}

bool all_ones(const uint8_t *valid, uint32_t element) {
    for (uint32_t i = 0; i < element; ++i)
        if (!valid[i]) return false;
    return true;
}

}  // namespace

// The place of a slot's next access.
struct Executor::Cursor {
    uint8_t *data, *valid;  // valid: null if all bytes are
    uint64_t line;          // of the data cache, in memory that is written
    uint64_t where;
    uint32_t element, tensor;
};

void Executor::access_loop(uint32_t period, uint32_t count, uint32_t varied, asc_steps steps, int32_t line) {
    Core &core = running(line);
    if (period == 0 || period > ScalarLoop::MOST || period > history_.size() || count == 0 || count > most_accesses)
        diagnostics_.fail(Rule::Protocol, "a loop of no accesses");
    ScalarLoop loop;
    loop.core = core.id;
    loop.period = period;
    loop.count = count;
    for (uint32_t i = 0; i < period; ++i) {
        loop.slots[i] = history_.back(period - i);
        loop.slots[i].step = steps.bytes[i];
        loop.slots[i].where += static_cast<uint64_t>(loop.slots[i].step);
    }
    read_words(loop, varied != 0);
    diagnostics_.line = loop.line_before(0);
    looped_accesses_ += count;
    for (uint32_t i = 0; i < count; ++i) looped_blocks_ += loop.code_before(i).blocks;
    if (undisturbed(core, loop)) whole_loop(core, loop);
    else
        for (uint32_t i = 0; i < count; ++i) one_access(loop, i);
}

// The words of each access: the plain code before it if it varies, and the value that is written.
void Executor::read_words(ScalarLoop &loop, bool varied) {
    size_t writes = 0;
    for (uint32_t i = 0; i < loop.period; ++i) writes += loop.slots[i].write ? loop.times(i) : 0;
    words_.resize(writes + (varied ? loop.count : 0));
    if (options_.words) options_.words(words_.data(), words_.size());
    values_.clear();
    varied_code_.clear();
    const uint64_t *word = words_.data();
    if (varied) {
        for (uint32_t i = 0; i < loop.count; ++i) {
            varied_code_.push_back(PlainCode::of(*word++));
            if (loop.slot(i).write) values_.push_back(*word++);
        }
        loop.varied = varied_code_.data();
    } else {
        values_ = words_;
    }
    next_value_ = 0;
}

void Executor::one_access(const ScalarLoop &loop, uint32_t number) {
    const ScalarLoop::Slot &slot = loop.slot(number);
    const uint64_t where = loop.where(number);
    plain_code(loop.code_before(number));
    if (!slot.write) return reread(slot.dtype, where, slot.global, slot.line);
    const uint64_t bits = values_[next_value_++];
    if (slot.global) return write_global(slot.dtype, where, bits, slot.line);
    Core &core = running(slot.line);
    const uint32_t element = bytes_of_dtype(slot.dtype), addr = static_cast<uint32_t>(where);
    const uint32_t space = static_cast<uint32_t>(where >> 32), capacity = capacity_of(space);
    if (capacity == 0 || addr > capacity - element)
        diagnostics_.fail(Rule::Protocol, "SetValue outside on-chip memory");
    store_local(core, slot.dtype, space, addr, bits);
}

bool Executor::undisturbed(Core &core, const ScalarLoop &loop) {
    for (uint32_t i = 0; i < loop.period && i < loop.count; ++i) {
        const ScalarLoop::Slot &slot = loop.slots[i];
        const uint32_t element = bytes_of_dtype(slot.dtype);
        const Span span = span_of(loop, i, element);
        if (slot.where % element || slot.step % element || span.end > 1ull << 62 || span.begin > span.end) return false;
        if (!(slot.global ? undisturbed_global(core, loop, i, span.begin, span.end)
                          : undisturbed_local(core, slot, span.begin, span.end)))
            return false;
    }
    return true;
}

bool Executor::undisturbed_local(Core &core, const ScalarLoop::Slot &slot, uint64_t begin, uint64_t end) {
    const uint32_t space = static_cast<uint32_t>(begin >> 32), from = static_cast<uint32_t>(begin),
                   to = static_cast<uint32_t>(end);
    if (end - 1 >> 32 != space || to > capacity_of(space)) return false;
    check_unit(ASC_S, space, calls[0][slot.write]);
    if (space == ASC_UB && std::any_of(core.freed.begin() + from / 32, core.freed.begin() + (to - 1) / 32 + 1,
                                       [](uint8_t freed) { return freed != 0; }))
        return false;
    LocalMemory &memory = core.memory(space);
    for (uint32_t other = ASC_V; other < ASC_PIPES; ++other) {
        const uint32_t known = core.clocks.known(ASC_S, other);
        if (core.clocks.issued(other) <= known) continue;
        if (memory.writes(other).newest(from, to) > known) return false;
        if (slot.write && memory.reads(other).newest(from, to) > known) return false;
    }
    return true;
}

// Elements that lie side by side are looked up as one range.
bool Executor::undisturbed_global(Core &core, const ScalarLoop &loop, uint32_t number, uint64_t begin, uint64_t end) {
    const ScalarLoop::Slot &slot = loop.slots[number];
    const uint32_t element = bytes_of_dtype(slot.dtype);
    if (!global_.undisturbed(begin, end - begin, slot.write)) return false;
    const uint32_t tensor = static_cast<uint32_t>((begin - ASC_GM_BASE) / ASC_GM_STRIDE);
    const Rows rows = {begin - ASC_GM_BASE, end - begin, 1, end - begin};
    if (!in_order(core, ASC_S, tensor, rows, slot.write)) return false;
    if (side_by_side(slot)) return !global_.conflict(begin, end - begin, core.id, ASC_S, slot.write);
    for (uint32_t i = number; i < loop.count; i += loop.period)
        if (global_.conflict(loop.where(i), element, core.id, ASC_S, slot.write)) return false;
    return true;
}

void Executor::whole_loop(Core &core, const ScalarLoop &loop) {
    std::vector<Cursor> cursors;
    for (uint32_t i = 0; i < loop.period && i < loop.count; ++i) {
        const ScalarLoop::Slot &slot = loop.slots[i];
        const uint32_t element = bytes_of_dtype(slot.dtype);
        const Span span = span_of(loop, i, element);
        data_dependent_ |= !slot.write;
        instruction_counts_.count(names[slot.global][slot.write], loop.times(i));
        if (slot.global) claim_global(core, loop, i, span.begin, span.end);
        else if (options_.compute)
            core.memory(static_cast<uint32_t>(span.begin >> 32)).data(0, static_cast<uint32_t>(span.end));
        cursors.push_back(cursor_at(core, slot, element));
    }
    for (uint32_t i = 0, phase = 0; i < loop.count; ++i, phase = phase + 1 == loop.period ? 0 : phase + 1)
        follow(core, loop.slots[phase], cursors[phase]);
    const uint32_t last = std::min(loop.count, loop.period);
    for (uint32_t i = loop.count - last; i < loop.count; ++i) {
        ScalarLoop::Slot slot = loop.slot(i);
        slot.where = loop.where(i);
        slot.code = loop.code_before(i);
        history_.push(slot);
    }
    diagnostics_.line = loop.slot(loop.count - 1).line;
    sink_.take_loop(loop);
}

void Executor::claim_global(Core &core, const ScalarLoop &loop, uint32_t number, uint64_t begin, uint64_t end) {
    const ScalarLoop::Slot &slot = loop.slots[number];
    const char *what = calls[1][slot.write];
    const auto claim = [&](uint64_t address, uint64_t bytes) {
        const GlobalBytes range = global_.locate(address, bytes, slot.write, what);
        if (slot.write) global_.written_by(range, core.id, ASC_S, 0, what);
        else global_.read_by(range, core.id, ASC_S, what);
    };
    if (side_by_side(slot)) return claim(begin, end - begin);
    for (uint32_t i = number; i < loop.count; i += loop.period) claim(loop.where(i), bytes_of_dtype(slot.dtype));
}

Executor::Cursor Executor::cursor_at(Core &core, const ScalarLoop::Slot &slot, uint32_t element) {
    Cursor cursor = {nullptr, nullptr, no_line, slot.where, element, 0};
    if (slot.global) {
        cursor.tensor = static_cast<uint32_t>((slot.where - ASC_GM_BASE) / ASC_GM_STRIDE);
        const uint64_t offset = (slot.where - ASC_GM_BASE) % ASC_GM_STRIDE;
        uint8_t *valid = global_.valid(cursor.tensor);
        cursor.data = options_.compute ? global_.data(cursor.tensor) + offset : nullptr;
        cursor.valid = options_.compute && valid ? valid + offset : nullptr;
    } else if (options_.compute) {
        LocalMemory &memory = core.memory(static_cast<uint32_t>(slot.where >> 32));
        const uint32_t addr = static_cast<uint32_t>(slot.where);
        cursor.data = memory.data(addr, addr + element);
        cursor.valid = memory.valid(addr, addr + element);
    }
    return cursor;
}

// Executes the slot's next access.
void Executor::follow(Core &core, const ScalarLoop::Slot &slot, Cursor &at) {
    if (slot.write) {
        const uint64_t bits = values_[next_value_++];
        const uint64_t line = (at.where - ASC_GM_BASE) / cache_line;
        if (slot.global && line != at.line) {
            diagnostics_.line = slot.line;
            make_dirty(core, at.line = line, at.tensor);
        }
        if (at.data) store(at.data, bits, at.element);
        if (at.valid) std::memset(at.valid, 1, at.element);
    } else if (at.valid && !all_ones(at.valid, at.element)) {
        reread(slot.dtype, at.where, slot.global, slot.line);  // says what was never written
    }
    at.where += static_cast<uint64_t>(slot.step);
    if (at.data) at.data += slot.step;
    if (at.valid) at.valid += slot.step;
}

}  // namespace sim
