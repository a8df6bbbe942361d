#include "costs.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "numerics/dtype.h"

namespace sim {

namespace {

uint32_t element_bytes(uint32_t dtype) { return std::max(1u, bytes_of_dtype(dtype)); }

uint64_t up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

constexpr uint32_t bank_groups = 16, block_bytes = 32, blocks_of_a_repeat = 8, blocks_of_a_bank = 65536 / block_bytes;

uint32_t first_block(const Operand &operand, uint32_t repeat) {
    return operand.addr / block_bytes + repeat * operand.repeat_stride;
}

// How many blocks of one repeat lie in each of sixteen bank groups, by bits 5 to 8 of their addresses, and in which of
// a group's three banks, by bits 16 and 17.
struct Groups {
    std::array<uint8_t, bank_groups> blocks{}, banks{};

    // `accessed` has a bit for each block of a repeat.
    void add(const Operand &operand, uint32_t repeat, uint32_t accessed) {
        if (operand.block_stride == 0) accessed = 1;
        for (uint32_t i = 0; i < blocks_of_a_repeat; ++i) {
            if (!(accessed >> i & 1)) continue;
            const uint32_t block = first_block(operand, repeat) + i * operand.block_stride;
            blocks[block % bank_groups] += 1;
            banks[block % bank_groups] |= static_cast<uint8_t>(1u << block / blocks_of_a_bank % 8);
        }
    }
    uint32_t fullest() const { return *std::max_element(blocks.begin(), blocks.end()); }
    bool meets_in_a_bank(const Groups &other) const {
        for (uint32_t i = 0; i < bank_groups; ++i) {
            if (banks[i] & other.banks[i]) return true;
        }
        return false;
    }
};

bool reads_destination(uint32_t op) {
    return op == ASC_MULADDDST || op == ASC_FUSEDMULADD || op == ASC_FUSEDMULADDRELU || op == ASC_AXPY;
}

bool crosses_banks(const Operand &operand, uint32_t repeats) {
    const uint32_t last = first_block(operand, repeats - 1) + (blocks_of_a_repeat - 1) * operand.block_stride;
    return first_block(operand, 0) / blocks_of_a_bank != last / blocks_of_a_bank;
}

// The number of repeats after which all operands meet in groups and banks as in the first one.
uint32_t period(const Instr &instr) {
    uint32_t apart = bank_groups;
    for (uint32_t i = 0; i < instr.operands; ++i) {
        if (crosses_banks(instr.operand[i], instr.repeats)) return instr.repeats;
        apart = std::gcd(
            apart, static_cast<uint32_t>(std::abs(instr.operand[i].repeat_stride - instr.operand[0].repeat_stride)));
    }
    return std::min(bank_groups / apart, instr.repeats);
}

}  // namespace

Costs::Line Costs::line(const Row &row) { return {ticks(row.startup), ticks(row.repeat), ticks(row.repeat16)}; }

Costs::Costs(const Chip &chip) {
    std::transform(chip.vector.begin(), chip.vector.end(), vector_.begin(), line);
    std::transform(chip.basic.begin(), chip.basic.end(), basic_.begin(), line);
    std::transform(chip.reduce.begin(), chip.reduce.end(), reduce_.begin(), line);
    std::transform(chip.call.begin(), chip.call.end(), call_.begin(), ticks);
    std::transform(chip.library.begin(), chip.library.end(), library_.begin(), ticks);
    std::transform(chip.tile.begin(), chip.tile.end(), tile_.begin(), ticks);
    tail_ = ticks(chip.unit.tail);
    row_reduce_ = ticks(chip.unit.row_reduce);
    read_read_ = ticks(chip.unit.read_read);
    read_write_ = ticks(chip.unit.read_write);
    local_copy_ = line({chip.unit.local_copy, chip.unit.local_copy_repeat, chip.unit.local_copy_repeat});
    pass_startup_ = ticks(chip.pass.startup);
    pass_repeat_ = ticks(chip.pass.repeat);
    pass_repeat16_ = ticks(chip.pass.repeat16);
    pass_row_ = ticks(chip.pass.row);
    cube_startup_ = ticks(chip.cube.startup);
    cube_step_ = ticks(chip.cube.step);
    load_latency_ = ticks(chip.cube.load_latency);
    copy_issue_ = ticks(chip.copy.issue);
    copy_burst_ = ticks(chip.copy.burst);
    fix_latency_ = ticks(chip.cube.fix_latency);
    latency_ = ticks(chip.copy.latency);
    matmul_call_ = ticks(chip.matmul.call);
    matmul_step_ = ticks(chip.matmul.step);
    matmul_drain_ = ticks(chip.matmul.drain);
    matmul_overlap_ = ticks(chip.matmul.overlap);
    atomic_ = ticks(chip.memory.atomic);
    l1_bytes_ = static_cast<uint64_t>(chip.l1_bytes);
    l0a_bytes_ = static_cast<uint64_t>(chip.l0a_bytes);
    l0b_bytes_ = static_cast<uint64_t>(chip.l0b_bytes);
    l0c_bytes_ = static_cast<uint64_t>(chip.l0c_bytes);
    l0a_ = rate(chip.cube.l0a_bytes);
    l0b_ = rate(chip.cube.l0b_bytes);
    l1_ = rate(chip.cube.l1_bytes);
    tables_ = rate(chip.cube.table_bytes);
}

Ticks Costs::of(const Line &line, const Instr &instr) {
    const Ticks repeat = element_bytes(instr.dtype) == 2 ? line.repeat16 : line.repeat;
    return line.startup + repeat * instr.repeats;
}

// A library function: a number of vector instructions over the data, in float if the data are 16 bits wide.
Ticks Costs::passes(Ticks count, const Instr &instr) const {
    const Ticks repeat = element_bytes(instr.dtype) == 2 ? pass_repeat16_ : pass_repeat_;
    return count * (pass_startup_ + repeat * instr.repeats) / CYCLE;
}

// A row-wise function of the library. One that sorts takes no less than the instructions that it consists of.
Ticks Costs::tile(const Instr &instr) const {
    const Ticks time = passes(tile_[instr.op], instr) + pass_row_ * instr.a;
    if (!instr.b) return time;
    return std::max(time, static_cast<Ticks>(up(instr.elements, instr.b)) * sorting(instr.b, instr.c));
}

// Sort32, then MrgSort of four lists at a time, of which no more than `kept` pairs go on.
Ticks Costs::sorting(uint64_t elements, uint64_t kept) const {
    uint64_t lists = up(elements, 32);
    const Line &sort = basic_[static_cast<size_t>(Basic::Sort)], &merge = basic_[static_cast<size_t>(Basic::Merge)];
    Ticks total = sort.startup + sort.repeat * static_cast<Ticks>(lists);
    for (uint64_t length = 32; lists > 1; lists = up(lists, 4), length *= 4)
        total += merge.startup + merge.repeat * static_cast<Ticks>(up(lists * std::min(length, kept), 32));
    return total;
}

// Level-2 reductions: one result a repeat, repeated until one result is left.
Ticks Costs::reduce(const Instr &instr) const {
    Line row = reduce_[instr.op < 3 ? instr.op * 3 : 0];
    row.repeat = row.repeat * row_reduce_ / CYCLE;
    row.repeat16 = row.repeat16 * row_reduce_ / CYCLE;
    const uint32_t bytes = element_bytes(instr.dtype);
    Ticks total = 0;
    Instr level = instr;
    do {
        total += of(row, level);
        level.repeats = static_cast<uint32_t>(up(static_cast<uint64_t>(level.repeats) * bytes, 256));
    } while (level.repeats > 1);
    return total + (instr.repeats > 1 ? of(row, level) : 0);
}

// The time of each repeat of an instruction whose operands meet in no bank group.
Ticks Costs::repeat(const Instr &instr) const {
    Instr none = instr, one = instr;
    none.repeats = 0, one.repeats = 1;
    return unit(one) - unit(none);
}

// A bank group reads one block and writes one block in a cycle, beside the computation. Measured are sources that meet
// in a group, and a destination in the bank of a source; the time of several blocks of one operand is documented.
Ticks Costs::conflict(const Instr &instr) const {
    if (instr.repeats == 0 || instr.family == Family::Transpose || instr.family == Family::Gather) return 0;
    const bool is_plain = instr.family == Family::Vector;
    const uint32_t first_read = is_plain && reads_destination(instr.op) ? 0 : 1;
    const bool is_cut = instr.tail && instr.repeats > 1;  // all repeats but the last are full
    const uint64_t lanes = is_cut ? up(256, element_bytes(instr.dtype)) : up(instr.elements, instr.repeats);
    const uint64_t count =
        is_plain ? std::clamp<uint64_t>(up(lanes * element_bytes(instr.dtype), block_bytes), 1, blocks_of_a_repeat)
                 : blocks_of_a_repeat;
    const uint32_t accessed = instr.blocks ? instr.blocks : (1u << count) - 1;
    const uint32_t repeats = period(instr);
    const Ticks computed = repeat(instr);
    Ticks total = 0;
    for (uint32_t number = 0; number < repeats; ++number) {
        Groups written, read;
        uint32_t fullest = 1;
        bool overtaken = false;
        if (instr.operands) written.add(instr.operand[0], number, accessed);
        for (uint32_t i = first_read; i < instr.operands; ++i) {
            Groups source;
            source.add(instr.operand[i], number, accessed);
            fullest = std::max(fullest, source.fullest());
            if (!is_plain) continue;
            read.add(instr.operand[i], number, accessed);
            overtaken |= i && instr.operands > 2 && written.meets_in_a_bank(source);
        }
        fullest = std::max({fullest, read.fullest(), written.fullest()});
        const Ticks accessed = read_read_ * (fullest - 1) + CYCLE;
        total += std::max<Ticks>(accessed - computed, overtaken ? read_write_ : 0);
    }
    return total * instr.repeats / repeats;
}

// The unit waits for the bank groups, which take longer the more blocks of a repeat lie in the same one.
Ticks Costs::gather(const Instr &instr) const {
    const Ticks startup = basic_[static_cast<size_t>(Basic::Gather)].startup;
    return std::max(basic(Basic::Gather, instr), startup + read_read_ * instr.a);
}

// Sixteen blocks in two repeats; a bank group reads or writes one of them in a cycle.
Ticks Costs::transpose(const Instr &instr) const {
    const Ticks time = basic(Basic::Transpose, instr), startup = basic_[static_cast<size_t>(Basic::Transpose)].startup;
    return std::max(time, startup + read_read_ * instr.a * (instr.repeats / 2));
}

Ticks Costs::unit(const Instr &instr) const {
    switch (instr.family) {
        case Family::Vector: return instr.op < ASC_VECTOR_OPS ? of(vector_[instr.op], instr) : 0;
        case Family::Library: return instr.op < ASC_LIBRARY_OPS ? passes(library_[instr.op], instr) : 0;
        case Family::Tile: return instr.op < ASC_TILE_OPS ? tile(instr) : 0;
        case Family::Cast: return basic(Basic::Cast, instr);
        case Family::Compare: return basic(Basic::Compare, instr);
        case Family::Select: return basic(Basic::Select, instr);
        case Family::Reduce: return reduce(instr);
        case Family::ReduceParts: {
            const size_t row = (instr.op / 4) * 3 + instr.op % 4;
            return row < reduce_.size() ? of(reduce_[row], instr) : 0;
        }
        case Family::Index: return basic(Basic::Index, instr);
        case Family::Brcb: return basic(Basic::Brcb, instr);
        case Family::Gather: return gather(instr);
        case Family::GatherMask: return basic(Basic::GatherMask, instr);
        case Family::Transpose: return transpose(instr);
        case Family::Sort: return basic(Basic::Sort, instr);
        case Family::Merge: return basic(Basic::Merge, instr);
        case Family::CopyLocal: return of(local_copy_, instr);
    }
    return 0;
}

Costs::Vector Costs::vector(const Instr &instr) const {
    Vector cost;
    cost.conflict = conflict(instr);
    cost.time = unit(instr) + cost.conflict + (instr.tail ? tail_ : 0);
    return cost;
}

// Fractals of 16 x 16 x 32 bytes, one a cycle; float takes two cycles.
Ticks Costs::cube(const Instr &instr) const {
    const uint32_t bytes = element_bytes(instr.dtype);
    const uint64_t fractals = up(instr.a, 16) * up(instr.b, 16) * up(static_cast<uint64_t>(instr.c) * bytes, 32);
    return cube_startup_ + cube_step_ * static_cast<Ticks>(bytes == 4 ? 2 * fractals : fractals);
}

Ticks Costs::load(const Instr &instr) const {
    const uint64_t bytes = static_cast<uint64_t>(instr.bursts) * instr.burst_bytes;
    const Rate &rate = instr.space == ASC_L0A   ? l0a_
                       : instr.space == ASC_L0B ? l0b_
                       : instr.space == ASC_L1  ? l1_
                                                : tables_;
    return load_latency_ + rate.of(bytes);
}

// The base block of the call, halved until it fits into L0, and the number of k steps that one copy loads.
Costs::Blocking Costs::blocking(const Instr &instr) const {
    const asc_matmul_shape &shape = instr.matmul;
    const uint64_t bytes = element_bytes(instr.dtype);
    Blocking block{std::max(1u, std::min(shape.base_m, shape.m)), std::max(1u, std::min(shape.base_n, shape.n)),
                   std::max(1u, std::min(shape.base_k, shape.k)), 1, shape.depth_a > 1 && shape.depth_b > 1};
    while (block.m * block.n * 4 > l0c_bytes_) (block.m > block.n ? block.m : block.n) /= 2;
    while (block.k > 1 && (block.m * block.k * bytes > l0a_bytes_ || block.k * block.n * bytes > l0b_bytes_))
        block.k /= 2;
    while (block.m * block.k * bytes > l0a_bytes_) block.m /= 2;
    while (block.n * block.k * bytes > l0b_bytes_) block.n /= 2;
    const uint64_t step = (block.m + block.n) * block.k * bytes, room = l1_bytes_ / step / 2;
    block.ahead = block.ahead && room > 0;
    if (block.ahead)
        block.along = std::max<uint64_t>(1, std::min<uint64_t>(std::min(shape.depth_a, shape.depth_b) / 2, room));
    return block;
}

// Computes C block by block, each a sum over steps of k. With one buffer in L1 a step is loaded and then moved to L0
// while the cube computes the previous step. With more buffers, loads run ahead and one copy brings several steps. Each
// block fetches its part of the bias.
Costs::Matmul Costs::matmul(const Instr &instr, Rate in, Rate out) const {
    const asc_matmul_shape &shape = instr.matmul;
    const auto [m, n, k, along, ahead] = blocking(instr);
    const uint64_t bytes = element_bytes(instr.dtype), written = m * n * element_bytes(instr.op);
    const uint64_t blocks = up(shape.m, m) * up(shape.n, n) * std::max(1u, shape.batch);
    const uint64_t steps = blocks * up(shape.k, k), bursts = up(m, along) + k;
    Instr step = instr;
    step.a = static_cast<uint32_t>(m), step.b = static_cast<uint32_t>(n), step.c = static_cast<uint32_t>(k);
    const Ticks load = 2 * copy_issue_ / static_cast<Ticks>(along) + copy_burst_ * static_cast<Ticks>(bursts) +
                       in.of((m + n) * k * bytes) + (ahead ? 0 : latency_);
    const Ticks move = 2 * load_latency_ + l0a_.of(m * k * bytes) + l0b_.of(k * n * bytes);
    const MatrixRows &bias = instr.matrix[3];
    const uint64_t biases = bias.count ? bias.bytes / shape.n * n : 0;
    const Ticks stored = instr.atomic ? out.of(written) * atomic_ / CYCLE : out.of(written);
    Matmul cost;
    cost.ahead = ahead;
    cost.mac = static_cast<Ticks>(steps) * (cube(step) + matmul_step_ + (ahead ? 0 : matmul_drain_));
    cost.mte1 = static_cast<Ticks>(steps) * move;
    cost.mte2 = static_cast<Ticks>(steps) * load;
    if (biases) {
        cost.mte1 += static_cast<Ticks>(blocks) * (load_latency_ + tables_.of(biases));
        cost.mte2 += static_cast<Ticks>(blocks) * (copy_issue_ + copy_burst_ + in.of(biases) + (ahead ? 0 : latency_));
    }
    cost.fix = static_cast<Ticks>(blocks) * (fix_latency_ + copy_burst_ * static_cast<Ticks>(m) + stored);
    cost.parts = k * along * bytes < 512 ? m * steps : 0;
    cost.read = steps * (m + n) * k * bytes + blocks * biases;
    cost.written = blocks * written;
    return cost;
}

Ticks Costs::matmul_time(const Matmul &cost) const {
    if (!cost.ahead) return matmul_call_ + cost.mte1 + std::max(cost.mte2, cost.mac) + cost.fix;
    return matmul_call_ + std::max({cost.mac, cost.mte1, cost.mte2, cost.fix}) * matmul_overlap_ / CYCLE;
}

}  // namespace sim
