// The interface between kernel code and the device: every call that crosses it, and nothing else.
//
// kernel_operator.h is thin: its templates turn Ascend C calls into the type-erased calls below. Each ASC_CALL becomes
// one record in the ring that the device process reads; marshal.py generates both ends from this file, so a new call
// needs only a declaration here. ASC_QUERY calls wait for a reply. ASC_FRONT calls are answered inside the kernel
// process and never cross (they may emit ASC_CALL records themselves).
//
// Rules for this file: plain C types, one declaration per line, every ASC_CALL and ASC_QUERY ends in `int32_t line`
// (the author's line), arguments of at most ASC_PAYLOAD bytes in all. Types must have no padding that matters: records
// are compared and hashed.
#pragma once
#include <stdint.h>

#define ASC_EXPORT extern "C" __attribute__((visibility("default")))
#define ASC_CALL ASC_EXPORT void
#define ASC_QUERY ASC_EXPORT
#define ASC_FRONT ASC_EXPORT

enum { ASC_PAYLOAD = 168 };

// Element types share their codes with KernelDtype of kernel_gym.h; asc_dtype adds those that only the device has.
// clang-format off
enum asc_dtype : uint8_t {
    ASC_F32 = 0, ASC_F16 = 1, ASC_BF16 = 2, ASC_I8 = 3, ASC_U8 = 4, ASC_I16 = 5, ASC_U16 = 6, ASC_I32 = 7, ASC_U32 = 8,
    ASC_I64 = 9, ASC_U64 = 10, ASC_BOOL = 11, ASC_I4 = 13,
};
// clang-format on

enum asc_pipe : uint8_t { ASC_S, ASC_V, ASC_M, ASC_MTE1, ASC_MTE2, ASC_MTE3, ASC_FIX, ASC_PIPES, ASC_ALL = 15 };

// On-chip memories.
enum asc_space : uint8_t { ASC_UB, ASC_L1, ASC_L0A, ASC_L0B, ASC_L0C, ASC_BT, ASC_FB, ASC_SPACES };

// Logical positions, in the order of TPosition.
// clang-format off
enum asc_position : uint8_t {
    ASC_POS_GM, ASC_POS_A1, ASC_POS_A2, ASC_POS_B1, ASC_POS_B2, ASC_POS_C1, ASC_POS_C2, ASC_POS_CO1, ASC_POS_CO2,
    ASC_POS_VECIN, ASC_POS_VECOUT, ASC_POS_VECCALC, ASC_POS_SPM, ASC_POS_TSCM, ASC_POS_C2PIPE2GM, ASC_POSITIONS,
};
// clang-format on

// A view of on-chip memory: its start and the number of bytes left in it.
struct asc_local {
    uint32_t addr;
    uint32_t bytes;
    uint32_t space;
};

// A global address. Tensor i is at ASC_GM_BASE + i * ASC_GM_STRIDE; nothing is mapped there in the kernel process.
typedef uint64_t asc_global;
static const uint64_t ASC_GM_BASE = 0x100000000000ull, ASC_GM_STRIDE = 1ull << 36;

// How a vector instruction iterates over its operands.
enum asc_form : uint8_t { ASC_COUNT, ASC_MASK, ASC_MASK_REGISTER };
struct asc_walk {
    uint64_t mask[2];  // bit i = element i of a repeat; only with ASC_MASK
    uint32_t count;    // ASC_COUNT: elements; ASC_MASK: the mask as the author gave it, if it was a number (in
                       // counter mode that is the element count; a mask larger than a repeat shows here), else 0
    uint16_t repeat;
    uint16_t form;
    uint16_t dst_block, src0_block, src1_block;  // strides in blocks of 32 bytes
    uint16_t dst_repeat, src0_repeat, src1_repeat;
};

// clang-format off
enum asc_vector_op : uint16_t {
    // binary
    ASC_ADD, ASC_SUB, ASC_MUL, ASC_DIV, ASC_MAX, ASC_MIN, ASC_AND, ASC_OR, ASC_ADDRELU, ASC_SUBRELU,
    ASC_MULADDDST, ASC_FUSEDMULADD, ASC_FUSEDMULADDRELU,
    // unary
    ASC_EXP, ASC_LN, ASC_ABS, ASC_SQRT, ASC_RSQRT, ASC_RECIPROCAL, ASC_RELU, ASC_NOT, ASC_COPY,
    // with a scalar
    ASC_ADDS, ASC_MULS, ASC_MAXS, ASC_MINS, ASC_LEAKYRELU, ASC_AXPY, ASC_SHIFTLEFT, ASC_SHIFTRIGHT, ASC_DUPLICATE,
    ASC_VECTOR_OPS,
};
// clang-format on

// High-level functions: several instructions each, with a temporary buffer. `flags` of asc_library: 1 = may overwrite
// the source, 2 = the second operand is `scalar`, 4 = the first operand is `scalar`. `scalar` is also Swish's beta and
// the limit of ClampMin/Max. `tmp` is the author's buffer, or all that InitBuffer left over in UB.
// clang-format off
enum asc_library_op : uint16_t {
    ASC_TANH, ASC_SIGMOID, ASC_ERF, ASC_ERFC, ASC_SIN, ASC_COS, ASC_TAN, ASC_ASIN, ASC_ACOS, ASC_ATAN, ASC_SINH, ASC_COSH,
    ASC_ASINH, ASC_ACOSH, ASC_ATANH, ASC_FLOOR, ASC_CEIL, ASC_ROUND, ASC_TRUNC, ASC_FRAC, ASC_SIGN, ASC_LOG, ASC_LOG2,
    ASC_LOG10, ASC_EXPHIGH, ASC_GELU, ASC_FASTERGELU, ASC_FASTERGELUV2, ASC_SILU, ASC_SWISH, ASC_LGAMMA, ASC_DIGAMMA,
    // two operands
    ASC_POWER, ASC_FMOD, ASC_XOR, ASC_SWIGLU, ASC_GEGLU, ASC_REGLU,
    // with a scalar
    ASC_CLAMPMAX, ASC_CLAMPMIN,
    ASC_LIBRARY_OPS,
};
// clang-format on

enum asc_reduce_op : uint8_t { ASC_REDUCE_SUM, ASC_REDUCE_MAX, ASC_REDUCE_MIN };
enum asc_reduce_unit : uint8_t { ASC_PER_REPEAT, ASC_PER_BLOCK, ASC_PER_PAIR };
enum asc_compare_mode : uint8_t { ASC_LT, ASC_GT, ASC_EQ, ASC_LE, ASC_GE, ASC_NE };
enum asc_round : uint8_t { ASC_NONE, ASC_RINT, ASC_FLOOR_MODE, ASC_CEIL_MODE, ASC_ROUND_MODE, ASC_TRUNC_MODE, ASC_ODD };
// A mixed block runs on a cube core and two vector cores, or one.
enum asc_core_kind : uint8_t { ASC_AIV, ASC_AIC, ASC_MIX, ASC_MIX_1_1 };

// ---- launches and cores ----------------------------------------------------------------------------------------
ASC_FRONT uint32_t asc_block_index();
ASC_FRONT uint32_t asc_block_count();
ASC_FRONT uint32_t asc_sub_block_index();
// 0: vector cores, 1: cube cores, 2: UB bytes, 3: L1 bytes, 4: address of the framework's workspace, 5: asc_core_kind of
// this core, 6: cores that run each block
ASC_FRONT uint64_t asc_platform(int32_t what);
ASC_FRONT void asc_launch(uint32_t blocks, uint32_t core_kind, void (*body)(void *), void *closure, int32_t line);
ASC_CALL asc_launch_begin(uint32_t blocks, uint32_t core_kind, int32_t line);
ASC_CALL asc_core_begin(uint32_t block, int32_t line);
ASC_CALL asc_core_resume(uint32_t block, int32_t line);
ASC_CALL asc_core_end(int32_t line);
ASC_CALL asc_launch_end(int32_t line);
ASC_CALL asc_returned(int32_t code, int32_t line);   // kernel_launch returned
ASC_CALL asc_stuck(uint32_t waiting, int32_t line);  // some cores wait for others that have finished

// Scalars (`scalar`, `bits`, `first`, ...) are passed as the raw bits of their type, zero-extended.

// ---- on-chip memory and queues ---------------------------------------------------------------------------------
// The kernel process mirrors the device's allocations (addresses increase, free buffers are reused in the order in
// which they were freed), so that allocation needs no reply; the device checks every step against its own copy.
// TQue<VECIN> opens (GM, VECIN), VECOUT (VECOUT, GM), VECCALC (VECCALC, VECCALC), A1/B1/C1 (GM, it), A2 (A1, A2), B2
// (B1, B2), C2 (C1, C2), CO1 (CO1, CO2), CO2 (CO2, GM); TQueBind<s, d> opens (s, d). The buffers lie in the memory of
// the destination, or of the source if the destination is GM or CO2.
ASC_FRONT uint32_t asc_queue_open(uint32_t source, uint32_t destination, int32_t depth);
ASC_FRONT void asc_queue_init(uint32_t queue, uint32_t count, uint32_t bytes, int32_t line);
ASC_FRONT asc_local asc_buffer_init(uint32_t position, uint32_t bytes, int32_t line);
ASC_FRONT asc_local asc_queue_alloc(uint32_t queue, int32_t line);
ASC_FRONT void asc_queue_enqueue(uint32_t queue, asc_local tensor, int32_t line);
ASC_FRONT asc_local asc_queue_dequeue(uint32_t queue, int32_t line);
ASC_FRONT void asc_queue_enqueue_as(uint32_t queue, asc_local tensor, uint32_t from, uint32_t to, int32_t line);
ASC_FRONT asc_local asc_queue_dequeue_as(uint32_t queue, uint32_t from, uint32_t to, int32_t line);
ASC_FRONT void asc_queue_free(uint32_t queue, asc_local tensor, int32_t line);
ASC_FRONT uint32_t asc_queue_length(uint32_t queue);
ASC_FRONT uint32_t asc_queue_idle(uint32_t queue);
ASC_FRONT void asc_tpipe_begin(int32_t line);  // a TPipe is constructed
ASC_FRONT void asc_tpipe_reset(int32_t line);
ASC_FRONT asc_local asc_unallocated(uint32_t space);  // the bytes that InitBuffer has not allocated (PopStackBuffer)
ASC_CALL asc_tpipe(uint32_t reset, int32_t line);
ASC_CALL asc_init_queue(uint32_t queue, uint32_t source, uint32_t destination, int32_t depth, uint32_t count,
                        uint32_t bytes, int32_t line);
ASC_CALL asc_init_buffer(uint32_t position, uint32_t bytes, int32_t line);
ASC_CALL asc_alloc(uint32_t queue, uint32_t addr, int32_t line);
ASC_CALL asc_enqueue(uint32_t queue, asc_local tensor, int32_t line);
ASC_CALL asc_dequeue(uint32_t queue, uint32_t addr, int32_t line);
ASC_CALL asc_enqueue_as(uint32_t queue, asc_local tensor, uint32_t source, uint32_t destination,
                        int32_t line);  // EnQue<source, destination>
ASC_CALL asc_dequeue_as(uint32_t queue, uint32_t addr, uint32_t source, uint32_t destination, int32_t line);
ASC_CALL asc_free(uint32_t queue, asc_local tensor, int32_t line);
// Inside a part of a buffer (TBufPool): `rest` is the free part; new bytes start at its first address.
ASC_FRONT void asc_queue_init_in(uint32_t queue, asc_local rest, uint32_t count, uint32_t bytes, int32_t line);
ASC_CALL asc_init_queue_in(uint32_t queue, uint32_t source, uint32_t destination, int32_t depth, uint32_t count,
                           uint32_t bytes, asc_local rest, int32_t line);
ASC_CALL asc_init_buffer_in(asc_local rest, uint32_t bytes, int32_t line);
ASC_FRONT void asc_pool_reset(asc_local pool, int32_t line);
ASC_CALL asc_reset_pool(asc_local pool, int32_t line);
ASC_CALL asc_static_alloc(uint32_t space, uint32_t addr, uint32_t bytes, int32_t line);  // LocalMemAllocator
ASC_CALL asc_offset_out_of_bounds(asc_local tensor, uint64_t offset_bytes, int32_t line);

// ---- copies ----------------------------------------------------------------------------------------------------
// Lengths and strides are in bytes; a stride is the gap between the end of one burst and the start of the next. `exact`
// is false for DataCopy (whole blocks of 32 bytes) and true for DataCopyPad. `pad_*` are elements.
struct asc_burst {
    uint32_t count, bytes;
    uint64_t src_gap, dst_gap;
};
ASC_CALL asc_copy_in(asc_local dst, asc_global src, asc_burst burst, uint32_t dtype, uint32_t exact, uint32_t pad,
                     uint32_t pad_left, uint32_t pad_right, uint64_t pad_bits, int32_t line);
ASC_CALL asc_copy_out(asc_global dst, asc_local src, asc_burst burst, uint32_t dtype, uint32_t exact, int32_t line);
ASC_CALL asc_copy_local(asc_local dst, asc_local src, asc_burst burst, uint32_t dtype, int32_t line);
struct asc_nd2nz {
    uint32_t nd_num, n_value, d_value, src_nd_stride, src_d_value, dst_c0_stride, dst_n_stride, dst_nz_stride;
};
ASC_CALL asc_copy_nd2nz(asc_local dst, asc_global src, asc_nd2nz shape, uint32_t dtype, int32_t line);
ASC_CALL asc_set_pad_value(uint32_t dtype, uint64_t bits, int32_t line);
ASC_CALL asc_cache_hint(asc_global address, uint32_t bypass,
                        int32_t line);  // SetL2CacheHint on the tensor that holds the address
ASC_CALL asc_set_atomic(uint32_t mode, uint32_t dtype, int32_t line);  // 0 none, 1 add, 2 max, 3 min

// ---- vector unit -----------------------------------------------------------------------------------------------
ASC_CALL asc_vector(uint32_t op, uint32_t dtype, uint32_t src_dtype, asc_local dst, asc_local src0, asc_local src1,
                    uint64_t scalar, asc_walk walk, int32_t line);
ASC_CALL asc_library(uint32_t op, uint32_t dtype, asc_local dst, asc_local src0, asc_local src1, asc_local tmp,
                     uint64_t scalar, uint32_t flags, uint32_t count, int32_t line);
ASC_CALL asc_cast(uint32_t dst_dtype, uint32_t src_dtype, asc_local dst, asc_local src, uint32_t round, asc_walk walk,
                  int32_t line);
ASC_CALL asc_compare(uint32_t mode, uint32_t dtype, asc_local dst, asc_local src0, asc_local src1, uint64_t scalar,
                     uint32_t with_scalar, asc_walk walk, int32_t line);
ASC_CALL asc_select(uint32_t mode, uint32_t dtype, asc_local dst, asc_local mask, asc_local src0, asc_local src1,
                    uint64_t scalar, asc_walk walk, int32_t line);
ASC_CALL asc_reduce(uint32_t op, uint32_t dtype, asc_local dst, asc_local src, asc_local work, uint32_t with_index,
                    uint32_t src_repeat_stride, asc_walk walk, int32_t line);
ASC_CALL asc_reduce_parts(uint32_t op, uint32_t unit, uint32_t dtype, asc_local dst, asc_local src, uint32_t order,
                          asc_walk walk, int32_t line);
ASC_CALL asc_index(uint32_t dtype, asc_local dst, uint64_t first, uint64_t step, uint32_t count,
                   int32_t line);  // CreateVecIndex, ArithProgression
ASC_CALL asc_brcb(uint32_t dtype, asc_local dst, asc_local src, asc_walk walk, int32_t line);
ASC_CALL asc_gather(uint32_t dtype, asc_local dst, asc_local src, asc_local offsets, uint32_t base, uint32_t blocks,
                    asc_walk walk, int32_t line);
ASC_CALL asc_gather_mask(uint32_t dtype, asc_local dst, asc_local src, asc_local mask, uint32_t pattern,
                         uint32_t reduce, uint32_t count, asc_walk walk, int32_t line);
ASC_CALL asc_transpose16(uint32_t dtype, asc_local dst, asc_local src, int32_t line);
ASC_CALL asc_sort32(uint32_t dtype, asc_local dst, asc_local src, asc_local index, uint32_t repeat, int32_t line);
// Merges up to four lists of pairs (value, index), each in descending order; `count` are pairs. With several repeats
// the lists are adjacent and all have the same length.
struct asc_lists {
    asc_local list[4];
    uint32_t count[4];
    uint32_t lists, repeat, until_empty;
};
ASC_CALL asc_merge_sorted(uint32_t dtype, asc_local dst, asc_lists lists, int32_t line);
ASC_QUERY uint64_t asc_merge_counts(int32_t line);  // pairs that the last merge took from each list, 16 bits each
// Transposes the elements of 16 blocks of 32 bytes into 16 others.
struct asc_blocks16 { uint32_t dst[16], src[16]; };
struct asc_transpose_steps { uint32_t repeat, dst_step, src_step, dst_high, src_high; };  // steps in blocks
ASC_CALL asc_transpose_blocks(uint32_t dtype, asc_blocks16 blocks, asc_transpose_steps steps, int32_t line);
ASC_CALL asc_mask_mode(uint32_t counter, int32_t line);
ASC_CALL asc_mask_set(uint64_t high, uint64_t low, int32_t line);

// Row-wise library functions on (rows, columns) tiles; `valid_*` are the sizes without padding.
//   SOFTMAX     dst1 = sum, dst2 = max (bytes 0 if absent); flags: 1 = float sum and max with half data
//   LOGSOFTMAX  the same
//   SUM, MEAN   dst[row] = over the first valid_columns of src0's row
//   CUMSUM      axis 0: down the rows, 1: along a row; dst1 = the last row (bytes 0 if absent)
//   BROADCAST   rows, columns = of dst; axis = the dimension that is 1 in src0
//   PAD, UNPAD  rows, columns = of src0; valid_columns = columns without the padding; flags = left + 256 * right
//   LAYERNORM   dst1 = mean, dst2 = variance, src1 = gamma, src2 = beta, scalar = epsilon; RMSNORM: src1 = gamma
//   TOPK        dst = values, dst1 = indices, src1 = numbers of the elements (bytes 0: 0, 1, ...), axis = k; flags: 1 =
//               smallest first
//   SORT        rows of 32 elements; src1 = indices, dst = pairs of value and index; flags: 1 = all rows as one
//   EXTRACT     rows of 32 pairs in src0; dst = values, dst1 = indices
//   SIMPLESOFTMAX  src1 = sum, src2 = max of each row; flags as SOFTMAX
//   SOFTMAXFLASH, SOFTMAXFLASHV2  dst1 = sum, dst2 = max, dst3 = factor of what was computed before, src1 and src2 = sum
//               and max until now; flags: 1 as SOFTMAX, 2 = there was something before
//   QUANT       to int8: src0 * scale + offset; src1 = scale and src2 = offset of each column (bytes 0: halves of `scalar`)
//   DEQUANT     from int32 to `dtype`: src0 * scale; src1 = scale of each column, of type `axis` (bytes 0: `scalar`)
//   ANTIQUANT   from type `axis` to `dtype`: (src0 + offset) * scale; src1 = offset, src2 = scale of each column, or with
//               flags 1 of each row (bytes 0: halves of `scalar`)
//   GROUPNORM   rows are groups of `axis` channels, each of columns / axis elements; src1 = gamma, src2 = beta of all
//               rows * axis channels; dst1 = mean, dst2 = variance
//   SELECTBYTES src1 = one byte an element: where it is 0 (flags 1: is not 0) src0 is taken, else `scalar`
// clang-format off
enum asc_tile_op : uint16_t {
    ASC_SOFTMAX, ASC_LOGSOFTMAX, ASC_SUM, ASC_MEAN, ASC_CUMSUM, ASC_BROADCAST, ASC_PAD, ASC_UNPAD, ASC_LAYERNORM,
    ASC_RMSNORM, ASC_TOPK, ASC_SORT, ASC_EXTRACT, ASC_SIMPLESOFTMAX, ASC_SOFTMAXFLASH, ASC_SOFTMAXFLASHV2, ASC_QUANT,
    ASC_DEQUANT, ASC_ANTIQUANT, ASC_GROUPNORM, ASC_SELECTBYTES, ASC_TILE_OPS,
};
// clang-format on
struct asc_tile { uint32_t rows, columns, valid_rows, valid_columns, axis, flags; };
ASC_CALL asc_tile_function(uint32_t op, uint32_t dtype, asc_local dst, asc_local dst1, asc_local dst2, asc_local dst3,
                           asc_local src0, asc_local src1, asc_local src2, asc_local tmp, asc_tile tile,
                           uint64_t scalar, int32_t line);

// ---- scalar unit -----------------------------------------------------------------------------------------------
// A query returns the aligned block around the element. The kernel process may serve further reads of the block from
// that answer until something is written; every such read is still reported and checked.
enum { ASC_BLOCK = 1024 };
struct asc_block { uint8_t bytes[ASC_BLOCK]; };
ASC_QUERY asc_block asc_read_local(uint32_t dtype, asc_local tensor, uint64_t index, int32_t line);
ASC_QUERY asc_block asc_read_global(uint32_t dtype, asc_global address, int32_t line);
ASC_CALL asc_reread(
    uint32_t dtype, uint64_t where, uint32_t global,
    int32_t line);  // served from a block already sent; where = address, on-chip with the space in the upper half
ASC_CALL asc_write_local(uint32_t dtype, asc_local tensor, uint64_t index, uint64_t bits, int32_t line);
ASC_CALL asc_write_global(uint32_t dtype, asc_global address, uint64_t bits, int32_t line);
// The last `period` accesses repeat, `count` accesses in all, each `steps` bytes after the one of the period before. Values
// that are written come in the ring's words, in the order of the accesses; if the basic blocks before accesses vary, their
// number comes before each access's value.
struct asc_steps { int32_t bytes[32]; };
ASC_CALL asc_access_loop(uint32_t period, uint32_t count, uint32_t varied, asc_steps steps, int32_t line);
// One element, as its bits: these become the accesses above.
ASC_FRONT uint64_t asc_get_local(uint32_t dtype, asc_local tensor, uint64_t index, int32_t line);
ASC_FRONT uint64_t asc_get_global(uint32_t dtype, asc_global address, int32_t line);
ASC_FRONT void asc_set_local(uint32_t dtype, asc_local tensor, uint64_t index, uint64_t bits, int32_t line);
ASC_FRONT void asc_set_global(uint32_t dtype, asc_global address, uint64_t bits, int32_t line);
ASC_CALL asc_cache_clean(asc_global address, uint32_t entire, int32_t line);  // DataCacheCleanAndInvalid
ASC_QUERY uint64_t asc_gather_mask_count(int32_t line);

// ---- synchronisation -------------------------------------------------------------------------------------------
ASC_CALL asc_set_flag(uint32_t source, uint32_t destination, int32_t id, int32_t line);
ASC_CALL asc_wait_flag(uint32_t source, uint32_t destination, int32_t id, int32_t line);
ASC_FRONT int32_t asc_event_id(uint32_t source, uint32_t destination, uint32_t hold);
ASC_FRONT void asc_event_release(uint32_t source, uint32_t destination, int32_t id);
ASC_CALL asc_barrier(uint32_t pipe, int32_t line);
ASC_FRONT void asc_sync_all(int32_t line);
ASC_CALL asc_sync_point(int32_t line);  // this core reached SyncAll
// SyncAll through a workspace of 32 bytes for each of `used` cores (0: all of them), and as much of UB.
ASC_FRONT void asc_soft_sync_all(asc_global workspace, asc_local ub, uint32_t used, int32_t line);
ASC_CALL asc_soft_sync_point(asc_global workspace, asc_local ub, uint32_t used, int32_t line);
ASC_FRONT void asc_cross_core_wait(uint32_t flag, int32_t line);
ASC_FRONT void asc_cross_core_set(uint32_t mode, uint32_t pipe, uint32_t flag, int32_t line);
ASC_CALL asc_cross_set(uint32_t mode, uint32_t pipe, uint32_t flag, int32_t line);
ASC_CALL asc_cross_wait(uint32_t flag, int32_t line);
// IBSet and IBWait; `place`: the 32 bytes of the event in global memory, copied through those of `ub`.
struct asc_event { uint32_t block, event; };
ASC_FRONT void asc_block_event_set(asc_global place, asc_local ub, asc_event event, int32_t line);
ASC_FRONT void asc_block_event_wait(asc_global place, asc_local ub, asc_event event, int32_t line);
ASC_CALL asc_block_set(asc_global place, asc_local ub, asc_event event, int32_t line);
ASC_CALL asc_block_wait(asc_global place, asc_local ub, asc_event event, int32_t line);

// ---- Matmul (lib/matmul_intf.h) ----------------------------------------------------------------------------------
// transposed: 1; fractals: columns are 32 bytes wide (C's: 16 elements), each as long as the matrix has rows, and the
// leading dimension is the number of rows from one column to the next.
struct asc_matrix {
    asc_global address;
    uint32_t dtype;
    uint16_t transposed, fractals;
};
struct asc_matmul_shape { uint32_t m, n, k, lda, ldb, ldc, base_m, base_n, base_k, depth_a, depth_b, batch; };
ASC_CALL asc_matmul(asc_matrix a, asc_matrix b, asc_matrix c, asc_matrix bias, asc_matmul_shape shape, uint32_t flags,
                    int32_t line);  // flags: 1 bias, 2 atomic add, 4 asynchronous

// ---- the cube's basic API ----------------------------------------------------------------------------------------
// Fractals are 512 bytes: 16 rows of 32 bytes. L0A holds them row by row, L0B by k and then n with n as rows, L0C column
// by column with 16 x 16 elements of 4 bytes.
struct asc_fractals { uint32_t start, repeat, src_stride, dst_gap, transposed; };  // in fractals
ASC_CALL asc_load_fractals(asc_local dst, asc_local src, asc_fractals shape, uint32_t dtype, int32_t line);
struct asc_mmad_shape { uint32_t m, n, k, from_zero, with_bias; };  // from_zero: C starts from 0
ASC_CALL asc_mmad(asc_local c, asc_local a, asc_local b, asc_local bias, uint32_t c_dtype, uint32_t dtype,
                  asc_mmad_shape shape, int32_t line);
// nz: the result is in columns of fractals with dst_stride blocks of 32 bytes between them, otherwise in rows with
// dst_stride elements. quant: 0 by the types alone, 1 with `scale`, 2 with the n scales in `scales` (L1 or FB; 8 bytes
// each). src_stride: rows of C in L0C. registers: quant, nd_* and the scales are those of asc_fix_registers.
struct asc_fix_shape {
    uint32_t m, n, src_stride, dst_stride, relu, nz, split, quant, nd_num, src_nd_stride, dst_nd_stride, registers;
};
ASC_CALL asc_fixpipe(asc_global dst, asc_local src, asc_local scales, uint32_t dst_dtype, uint32_t src_dtype,
                     asc_fix_shape shape, uint64_t scale, int32_t line);
ASC_CALL asc_fixpipe_local(asc_local dst, asc_local src, asc_local scales, uint32_t dst_dtype, uint32_t src_dtype,
                           asc_fix_shape shape, uint64_t scale, int32_t line);
ASC_CALL asc_fix_registers(uint32_t which, uint64_t number, uint32_t nd_num, uint32_t src_nd_stride,
                           uint32_t dst_nd_stride, asc_local scales, int32_t line);  // 0: scale, 1: matrices, 2: scales
ASC_CALL asc_load_global_fractals(asc_local dst, asc_global src, asc_fractals shape, uint32_t dtype, int32_t line);
// Transposed squares of 16 or 32 elements: 1 fractal of 16-bit elements, 2 of 8 or 32 bits; strides in squares.
ASC_CALL asc_load_transposed(asc_local dst, asc_local src, asc_fractals shape, uint32_t fractal_gap, uint32_t dtype,
                             int32_t line);
// Operand of a convolution: rows of (output position), columns of (channel block, filter row, filter column, channel).
struct asc_image {
    uint32_t h, w, channels, k_extent, m_extent, k_start, m_start, stride_w, stride_h, filter_w, filter_h, dilation_w,
        dilation_h, left, right, top, bottom;
};
ASC_CALL asc_load_image(asc_local dst, asc_local src, asc_image image, uint64_t pad_bits, uint32_t dtype, int32_t line);
ASC_CALL asc_fill_fractals(asc_local dst, uint32_t repeat, uint32_t blocks, uint32_t gap, uint64_t bits, uint32_t dtype,
                           int32_t line);  // blocks, gap: of 512 bytes in L0, of 32 in L1

// ---- messages ----------------------------------------------------------------------------------------------------
struct asc_text { char bytes[96]; };
ASC_FRONT void asc_printf(int32_t line, const char *format, ...);  // becomes asc_print records
ASC_CALL asc_print(asc_text text, int32_t line);
ASC_CALL asc_dump(uint32_t dtype, asc_local tensor, uint32_t description, uint32_t count, int32_t line);
ASC_CALL asc_assert_failed(asc_text text, int32_t line);
ASC_CALL asc_misuse(asc_text text, int32_t line);  // a rule that the header can check, with a hint
