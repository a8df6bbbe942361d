// A chip profile: the figures with which the timing pass turns instructions into time.
//
// The figures are data (chips/*.yaml, each with its source); chip.py flattens them into key/value pairs, which the
// request carries. Chip names them and converts them to integer ticks, so that a latency is the same number on every
// host and with every compiler.
#pragma once
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "protocol/instr.h"

namespace sim {

// Time is counted in 1024ths of a cycle.
using Ticks = int64_t;
constexpr Ticks CYCLE = 1024;
Ticks ticks(double cycles);

// Ticks per byte with ten extra binary digits, because rates are far below one cycle a byte.
struct Rate {
    int64_t scaled = 0;
    Ticks of(uint64_t bytes) const { return static_cast<Ticks>(bytes) * scaled >> 10; }
};
Rate rate(double bytes_per_cycle);

// A vector instruction takes `startup` plus `repeat` for each 256 bytes (`repeat16` for 16-bit elements).
struct Row { double startup = 0, repeat = 0, repeat16 = 0; };

struct ChipError : std::runtime_error { using std::runtime_error::runtime_error; };

constexpr int BASIC_ROWS = 10, REDUCE_ROWS = 9, CALLS = 7;
extern const std::array<const char *, ASC_VECTOR_OPS> VECTOR_NAMES;
extern const std::array<const char *, ASC_LIBRARY_OPS> LIBRARY_NAMES;
extern const std::array<const char *, ASC_TILE_OPS> TILE_NAMES;
extern const std::array<const char *, BASIC_ROWS> BASIC_NAMES;    // by Basic
extern const std::array<const char *, REDUCE_ROWS> REDUCE_NAMES;  // by asc_reduce_op * 3 + asc_reduce_unit
extern const std::array<const char *, CALLS> CALL_NAMES;          // by Call
enum class Basic : uint8_t { Cast, Compare, Select, Index, Brcb, Gather, GatherMask, Transpose, Sort, Merge };

// All figures of a profile; chips/base.yaml explains each.
struct Figures {
    double clock_mhz, vector_cores, cube_cores, ub_bytes, l1_bytes, l0a_bytes, l0b_bytes, l0c_bytes;
    struct { double base_us, core_us, cube_us, block_cycles, sync_cycles, event_cycles; } launch;
    struct {
        double issue, block, integer, floats, division, local, load_use, global_hit, global_miss, cache_bytes,
            queue_depth;
    } scalar;
    std::array<double, CALLS> call;
    struct {
        double hbm_gbs, hbm_write, hbm_core_gbs, l2_gbs, l2_core_gbs, l1_core_gbs, write_core_gbs, atomic, l2_bytes,
            l2_usable;
    } memory;
    struct { double issue, burst, page, turn, latency, write_latency, shared, contended, window; } copy;
    std::array<Row, ASC_VECTOR_OPS> vector;
    std::array<Row, BASIC_ROWS> basic;
    std::array<Row, REDUCE_ROWS> reduce;
    struct { double tail, read_read, read_write, local_copy, local_copy_repeat, row_reduce; } unit;
    struct { double startup, repeat, repeat16, row; } pass;
    std::array<double, ASC_LIBRARY_OPS> library;
    std::array<double, ASC_TILE_OPS> tile;
    struct {
        double startup, step, l0a_bytes, l0b_bytes, l1_bytes, table_bytes, load_latency, fix_gbs, fix_latency;
    } cube;
    struct { double call, step, drain, overlap; } matmul;
};

class Chip : public Figures {
public:
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    // Throws ChipError if a key is unknown, missing or not a number.
    explicit Chip(const Pairs &pairs);

    std::string name;
    double bytes_per_cycle(double gbs) const { return gbs * 1000.0 / clock_mhz; }
    double microseconds(Ticks time) const { return static_cast<double>(time) / (CYCLE * clock_mhz); }
    Ticks from_us(double us) const { return ticks(us * clock_mhz); }
    uint32_t cores(uint32_t core_kind) const;
};

}  // namespace sim
