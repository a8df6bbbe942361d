// GetValue and SetValue. Reads are served from the last blocks that the device sent, until something is written. Inputs
// are never written, so their blocks are kept until the call ends; otherwise kernels that read one weight after another
// from global memory would wait for the device at each read.
//
// This process does not know whether there is data at all: in a timing-only run the device generates values by element
// type, so a block serves only reads of its own type.
#include <cstring>

#include "access_loops.h"
#include "kernel_process.h"
#include "pointers.h"

namespace sim::kernel_process {
namespace {

struct Cached {
    bool global;
    uint32_t dtype;
    uint64_t where;  // aligned; for on-chip memory the space is in the upper half
    asc_block block;
};

enum { WAYS = 8, LASTING = 64 };
Cached ways[WAYS];
uint32_t used, next_way;
Cached lasting[LASTING];  // direct-mapped by address; an address is never 0

uint64_t place(asc_local tensor, uint64_t byte) {
    return static_cast<uint64_t>(tensor.space) << 32 | (tensor.addr + byte);
}

constexpr uint32_t width(uint32_t dtype) {
    switch (dtype) {
        case ASC_F32:
        case ASC_I32:
        case ASC_U32: return 4;
        case ASC_F16:
        case ASC_BF16:
        case ASC_I16:
        case ASC_U16: return 2;
        case ASC_I64:
        case ASC_U64: return 8;
        default: return 1;
    }
}

constexpr uint64_t block_of(uint64_t where) { return where / ASC_BLOCK * ASC_BLOCK; }

// Inputs come first among the tensors of a call.
bool is_input(uint64_t address) { return (address - ASC_GM_BASE) / ASC_GM_STRIDE < ring().call.num_inputs; }

Cached &lasting_place(uint64_t where) { return lasting[where / ASC_BLOCK % LASTING]; }

Cached *find(bool global, uint32_t dtype, uint64_t where) {
    if (global && is_input(where)) {
        Cached &way = lasting_place(where);
        return way.dtype == dtype && way.where == block_of(where) ? &way : nullptr;
    }
    for (uint32_t i = 0; i < used; ++i)
        if (ways[i].global == global && ways[i].dtype == dtype && ways[i].where == block_of(where)) return &ways[i];
    return nullptr;
}

const asc_block &keep(bool global, uint32_t dtype, uint64_t where, const asc_block &block) {
    const bool lasts = global && is_input(where);
    Cached &way = lasts ? lasting_place(where) : ways[next_way++ % WAYS];
    if (!lasts && used < WAYS) ++used;
    way.global = global;
    way.dtype = dtype;
    way.where = block_of(where);
    way.block = block;
    return way.block;
}

// The answer of a query. It stays where kernel code cannot read it: a copy on the stack would give away 63 more
// elements for the cost of one.
template <class Args>
const asc_block &ask_with(Record *record, const Args &args) {
    new (record->payload) Args(args);
    send();
    return await_answer();
}

// The part of a block that kernel code receives: the element that it requested.
uint64_t bits_in(const asc_block &block, uint64_t where, uint32_t dtype) {
    uint64_t bits = 0;
    std::memcpy(&bits, block.bytes + where % ASC_BLOCK, width(dtype));
    return bits;
}

void patch(bool global, uint64_t where, uint64_t bits, uint32_t bytes) {
    for (uint32_t i = 0; i < used && where % bytes == 0; ++i)
        if (ways[i].global == global && ways[i].where == block_of(where))
            std::memcpy(ways[i].block.bytes + where % ASC_BLOCK, &bits, bytes);
}

bool aligned(uint64_t where, uint32_t dtype) { return where % width(dtype) == 0; }

}  // namespace

void forget_blocks() { used = next_way = 0; }

}  // namespace sim::kernel_process

using namespace sim::kernel_process;
using sim::kernel_process::access_loops::Access;

// Reports a read that a kept block serves.
static void reread(const Access &access) {
    if (access_loops::take(access)) return;
    const auto code = unsent_code();
    wire::reread(access.dtype, access.where, access.global, access.line);
    access_loops::sent(access, code);
}

template <class Args>
static uint64_t read(const Access &access, bool may_be_kept, uint16_t op, const Args &args) {
    pointers::flush();
    if (const Cached *way = may_be_kept ? find(access.global, access.dtype, access.where) : nullptr) {
        reread(access);
        return bits_in(way->block, access.where, access.dtype);
    }
    const auto code = unsent_code();
    const asc_block &answer = ask_with(claim(op, access.line), args);
    access_loops::sent(access, code);
    return bits_in(keep(access.global, access.dtype, access.where, answer), access.where, access.dtype);
}

uint64_t front::get_local(uint32_t dtype, asc_local tensor, uint64_t index, int32_t line) {
    const uint64_t where = place(tensor, index * width(dtype));
    const bool inside = (index + 1) * width(dtype) <= tensor.bytes && aligned(where, dtype);
    return read({where, dtype, false, false, 0, line}, inside, sim::OP_read_local,
                sim::args_read_local{dtype, tensor, index});
}

uint64_t front::get_global(uint32_t dtype, asc_global address, int32_t line) {
    return read({address, dtype, true, false, 0, line}, aligned(address, dtype), sim::OP_read_global,
                sim::args_read_global{dtype, address});
}

void front::set_local(uint32_t dtype, asc_local tensor, uint64_t index, uint64_t bits, int32_t line) {
    pointers::flush();
    const Access access = {place(tensor, index * width(dtype)), dtype, false, true, bits, line};
    if ((index + 1) * width(dtype) > tensor.bytes || !access_loops::take(access)) {
        const auto code = unsent_code();
        wire::write_local(dtype, tensor, index, bits, line);
        access_loops::sent(access, code);
    }
    patch(false, access.where, bits, width(dtype));
}

void front::set_global(uint32_t dtype, asc_global address, uint64_t bits, int32_t line) {
    pointers::flush();
    const Access access = {address, dtype, true, true, bits, line};
    if (!access_loops::take(access)) {
        const auto code = unsent_code();
        wire::write_global(dtype, address, bits, line);
        access_loops::sent(access, code);
    }
    patch(true, address, bits, width(dtype));
}
