// Instruction records: what the device executed, independent of any chip figure.
//
// The executor emits them in program order of each core; the timing pass (timeline.h) turns them into time with a chip
// profile. Because the two are separate, a run can be timed again for another chip, and timing is tested alone.
#pragma once
#include <cstdint>

#include "../../include/abi.h"
#include "scalar_loop.h"

namespace sim {

enum class Kind : uint8_t {
    LaunchBegin,  // a = blocks, b = asc_core_kind
    LaunchEnd,
    CoreBegin,   // core is set; a = block
    CoreResume,  // the core continues after others ran
    CoreEnd,
    Vector,        // pipe V: op, repeats, operands
    CopyIn,        // pipe MTE2: global -> on-chip
    CopyOut,       // pipe MTE3 (or FIX): on-chip -> global
    PlainCode,     // pipe S: a = cycles of plain code that ran since the last record
    ScalarLocal,   // pipe S: one on-chip scalar access; a = address, b = 1 for a write
    ScalarGlobal,  // pipe S: one global scalar access; gm = address, b = 1 for a write
    CacheClean,    // pipe S: the data cache drops the line at gm, or all lines if a = 1
    Overhead,      // pipe S: a call that costs issue time only; op = the Call
    Signal,        // signals under `token` that everything `pipe` has issued so far is done
    Wait,          // `pipe` waits for the signal `token`
    Barrier,       // pipe or ASC_ALL
    SyncAll,       // all cores of the launch synchronise
    Cube,          // pipe M: a matrix product, a = m, b = n, c = k of one base block
    Load,          // pipe MTE1: L1 -> L0
    Matmul,        // pipe M: the high-level Matmul: shape in `matmul`, dtype that of A, op the dtype of C
};

enum class Call : uint16_t { TPipe, InitBuffer, QueueOp, Flag, MaskSet, Print, Launch };

// The family that an operation's cost row belongs to: vector ops by asc_vector_op, others by the enums below.
enum class Family : uint8_t {
    Vector,
    Library,
    Cast,
    Compare,
    Select,
    Reduce,
    ReduceParts,
    Index,
    Brcb,
    Gather,
    GatherMask,
    Transpose,
    Sort,
    Merge,
    Tile,
    CopyLocal
};

// A matrix in global memory: `count` rows of `bytes`, their starts `pitch` bytes apart.
struct MatrixRows {
    uint64_t begin;
    uint32_t bytes, count;
    uint64_t pitch;
};

struct Operand {
    uint32_t addr;
    uint16_t block_stride, repeat_stride;
};  // strides in blocks; addr in its memory

struct Instr {
    Kind kind;
    uint8_t pipe;  // asc_pipe
    Family family;
    uint8_t dtype;     // of the destination
    uint16_t op;       // within the family; for ReduceParts: op * 4 + unit
    uint8_t operands;  // number of set entries of `operand`: dst, src0, src1
    uint8_t space;     // asc_space of the on-chip side of a copy
    uint32_t core;
    int32_t line;
    uint32_t repeats;      // vector: repeats of 256 bytes (library: of one pass over the data)
    uint32_t elements;     // vector: active elements in all
    uint32_t token;        // Signal, Wait: below 2^16 private to a core, from 2^31 on shared by the cores of a launch
    uint32_t a, b, c;      // see Kind; vector of Family::Tile: a = rows; if it sorts, b = elements that are sorted
                           // together, c = how many of them are kept; of Family::Transpose: a = cycles in which the
                           // bank groups give or take the blocks of a repeat; of Family::Gather: of all repeats
    uint64_t gm;           // copies: first global address
    uint32_t bursts;       // copies
    uint32_t burst_bytes;  // copies: bytes of one burst
    uint64_t gm_gap;       // copies: bytes between bursts on the global side
    Operand operand[3];
    asc_matmul_shape matmul;
    MatrixRows matrix[4];  // of Matmul: A, B, C and the bias, in their memory layout; without a bias it has no rows
    uint8_t tail;          // count form whose byte count is not a multiple of 256
    uint8_t atomic;
    uint8_t bypass;  // copies: the global side has a cache hint that keeps it out of L2
    uint8_t blocks;  // vector with a mask: those of a repeat that have active elements, a bit for each
};

// A destination of instruction records.
struct Sink {
    virtual ~Sink() = default;
    virtual void take(const Instr &instr) = 0;
    // The same as its accesses one by one.
    virtual void take_loop(const ScalarLoop &loop) {
        for (uint32_t i = 0; i < loop.count; ++i) {
            const ScalarLoop::Slot &slot = loop.slot(i);
            Instr instr{};
            instr.core = loop.core;
            if ((instr.a = loop.code_before(i).cycles)) {
                instr.kind = Kind::PlainCode;
                instr.line = loop.line_before(i);
                take(instr);
            }
            instr.kind = slot.global ? Kind::ScalarGlobal : Kind::ScalarLocal;
            instr.line = slot.line;
            instr.a = slot.global ? 0 : static_cast<uint32_t>(loop.where(i));
            instr.b = slot.write;
            instr.gm = slot.global ? loop.where(i) : 0;
            instr.space = slot.global ? 0 : static_cast<uint8_t>(loop.where(i) >> 32);
            take(instr);
        }
    }
};

}  // namespace sim
