// The cost of an instruction on its pipe, computed from a chip profile alone, without state.
#pragma once
#include "chip.h"

namespace sim {

class Costs {
public:
    explicit Costs(const Chip &chip);

    struct Vector {
        Ticks time = 0, conflict = 0;  // `conflict` is the part of `time` caused by bank conflicts
    };
    // The work of each pipe for one core's high-level Matmul. `ahead`: loads run ahead of the cube; `parts`: bursts
    // shorter than a sector.
    struct Matmul {
        Ticks mac = 0, mte1 = 0, mte2 = 0, fix = 0;
        uint64_t read = 0, written = 0, parts = 0;
        bool ahead = false;
    };
    Vector vector(const Instr &instr) const;
    Matmul matmul(const Instr &instr, Rate in, Rate out) const;
    Ticks matmul_time(const Matmul &cost) const;
    Ticks cube(const Instr &instr) const;
    Ticks load(const Instr &instr) const;
    Ticks overhead(uint16_t call) const { return call < call_.size() ? call_[call] : 0; }

private:
    struct Line { Ticks startup, repeat, repeat16; };
    struct Blocking {
        uint64_t m, n, k, along;
        bool ahead;
    };
    Blocking blocking(const Instr &instr) const;
    static Line line(const Row &row);
    static Ticks of(const Line &line, const Instr &instr);
    Ticks basic(Basic row, const Instr &instr) const { return of(basic_[static_cast<size_t>(row)], instr); }
    Ticks passes(Ticks count, const Instr &instr) const;
    Ticks reduce(const Instr &instr) const;
    Ticks tile(const Instr &instr) const;
    Ticks sorting(uint64_t elements, uint64_t kept) const;
    Ticks unit(const Instr &instr) const;
    Ticks repeat(const Instr &instr) const;
    Ticks conflict(const Instr &instr) const;
    Ticks transpose(const Instr &instr) const;
    Ticks gather(const Instr &instr) const;

    std::array<Line, ASC_VECTOR_OPS> vector_;
    std::array<Line, BASIC_ROWS> basic_;
    std::array<Line, REDUCE_ROWS> reduce_;
    std::array<Ticks, CALLS> call_;
    std::array<Ticks, ASC_LIBRARY_OPS> library_;  // passes
    std::array<Ticks, ASC_TILE_OPS> tile_;        // passes
    Line local_copy_;
    Ticks tail_, row_reduce_, read_read_, read_write_, pass_startup_, pass_repeat_, pass_repeat16_, pass_row_;
    Ticks cube_startup_, cube_step_, load_latency_, copy_issue_, copy_burst_, fix_latency_, latency_;
    Ticks matmul_call_, matmul_step_, matmul_drain_, matmul_overlap_, atomic_;
    uint64_t l1_bytes_, l0a_bytes_, l0b_bytes_, l0c_bytes_;
    Rate l0a_, l0b_, l1_, tables_;
};

}  // namespace sim
