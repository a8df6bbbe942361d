// Executes kernel records as the device would, and reports every broken rule, including those that hardware does not
// report.
//
// One Executor serves one run. Each public method below is one ASC_CALL or ASC_QUERY of abi.h with the same arguments.
// Records are untrusted, so every argument is checked before it is used. A broken rule throws DeviceFault and ends the
// run. Instruction records go to the sink in program order of each core.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../../include/abi.h"
#include "access_history.h"
#include "core.h"
#include "core_order.h"
#include "protocol/diagnostics.h"
#include "global_memory.h"
#include "protocol/instr.h"
#include "instruction_counts.h"
#include "operands.h"
#include "numerics/products.h"

namespace sim {

struct ExecutorOptions {
    bool compute = true;     // false: records only, without data
    uint8_t poison = 165;    // value of uninitialised on-chip memory
    bool auto_sync = false;  // inserts the flags between pipes that the author left out
    uint32_t vector_cores = 48, cube_cores = 24;
    uint64_t work_limit = 1ull << 34;                       // elements and multiply-adds that one run may compute
    std::vector<TensorArg> tensors;                         // in the order of their ids
    std::function<void(uint64_t *to, size_t count)> words;  // reads what came with a loop of accesses
};

class Executor {
public:
    Executor(const ExecutorOptions &options, Sink &sink);
    ~Executor();
    Executor(const Executor &) = delete;
    Executor &operator=(const Executor &) = delete;

    // Basic blocks of plain code that ran on the current core since the last record.
    void plain_code(PlainCode code);
    // Accesses in loops, and the basic blocks before them, so far.
    uint64_t looped_accesses() const { return looped_accesses_; }
    uint64_t looped_blocks() const { return looped_blocks_; }
    bool launched() const { return launched_; }
    bool returned() const { return returned_; }
    int code() const { return code_; }
    std::string report_json() const;
    // The share of its limit of elements that the run has computed.
    double worked() const { return static_cast<double>(worked_) / static_cast<double>(options_.work_limit); }

    // ---- launches and cores (executor.cpp)
    void launch_begin(uint32_t blocks, uint32_t core_kind, int32_t line);
    void core_begin(uint32_t block, int32_t line);
    void core_resume(uint32_t block, int32_t line);
    void core_end(int32_t line);
    void launch_end(int32_t line);
    void returned(int32_t code, int32_t line);
    void stuck(uint32_t waiting, int32_t line);

    // ---- on-chip memory and queues (queues.cpp)
    void tpipe(uint32_t reset, int32_t line);
    void init_queue(uint32_t queue, uint32_t source, uint32_t destination, int32_t depth, uint32_t count,
                    uint32_t bytes, int32_t line);
    void init_buffer(uint32_t position, uint32_t bytes, int32_t line);
    void alloc(uint32_t queue, uint32_t addr, int32_t line);
    void enqueue(uint32_t queue, asc_local tensor, int32_t line);
    void dequeue(uint32_t queue, uint32_t addr, int32_t line);
    void enqueue_as(uint32_t queue, asc_local tensor, uint32_t source, uint32_t destination, int32_t line);
    void dequeue_as(uint32_t queue, uint32_t addr, uint32_t source, uint32_t destination, int32_t line);
    void free(uint32_t queue, asc_local tensor, int32_t line);
    void init_queue_in(uint32_t queue, uint32_t source, uint32_t destination, int32_t depth, uint32_t count,
                       uint32_t bytes, asc_local rest, int32_t line);
    void init_buffer_in(asc_local rest, uint32_t bytes, int32_t line);
    void reset_pool(asc_local pool, int32_t line);
    void static_alloc(uint32_t space, uint32_t addr, uint32_t bytes, int32_t line);
    void offset_out_of_bounds(asc_local tensor, uint64_t offset_bytes, int32_t line);

    // ---- copies (copies.cpp)
    void copy_in(asc_local dst, asc_global src, asc_burst burst, uint32_t dtype, uint32_t exact, uint32_t pad,
                 uint32_t pad_left, uint32_t pad_right, uint64_t pad_bits, int32_t line);
    void copy_out(asc_global dst, asc_local src, asc_burst burst, uint32_t dtype, uint32_t exact, int32_t line);
    void copy_local(asc_local dst, asc_local src, asc_burst burst, uint32_t dtype, int32_t line);
    void copy_nd2nz(asc_local dst, asc_global src, asc_nd2nz shape, uint32_t dtype, int32_t line);
    void set_pad_value(uint32_t dtype, uint64_t bits, int32_t line);
    void cache_hint(asc_global address, uint32_t bypass, int32_t line);
    void set_atomic(uint32_t mode, uint32_t dtype, int32_t line);

    // ---- vector unit (vector_unit.cpp, cast.cpp, compare.cpp, reduce.cpp, rearrange.cpp, sorting.cpp, library.cpp,
    // tiles.cpp)
    void vector(uint32_t op, uint32_t dtype, uint32_t src_dtype, asc_local dst, asc_local src0, asc_local src1,
                uint64_t scalar, asc_walk walk, int32_t line);
    void library(uint32_t op, uint32_t dtype, asc_local dst, asc_local src0, asc_local src1, asc_local tmp,
                 uint64_t scalar, uint32_t flags, uint32_t count, int32_t line);
    void cast(uint32_t dst_dtype, uint32_t src_dtype, asc_local dst, asc_local src, uint32_t round, asc_walk walk,
              int32_t line);
    void compare(uint32_t mode, uint32_t dtype, asc_local dst, asc_local src0, asc_local src1, uint64_t scalar,
                 uint32_t with_scalar, asc_walk walk, int32_t line);
    void select(uint32_t mode, uint32_t dtype, asc_local dst, asc_local mask, asc_local src0, asc_local src1,
                uint64_t scalar, asc_walk walk, int32_t line);
    void reduce(uint32_t op, uint32_t dtype, asc_local dst, asc_local src, asc_local work, uint32_t with_index,
                uint32_t src_repeat_stride, asc_walk walk, int32_t line);
    void reduce_parts(uint32_t op, uint32_t unit, uint32_t dtype, asc_local dst, asc_local src, uint32_t order,
                      asc_walk walk, int32_t line);
    void index(uint32_t dtype, asc_local dst, uint64_t first, uint64_t step, uint32_t count, int32_t line);
    void brcb(uint32_t dtype, asc_local dst, asc_local src, asc_walk walk, int32_t line);
    void gather(uint32_t dtype, asc_local dst, asc_local src, asc_local offsets, uint32_t base, uint32_t blocks,
                asc_walk walk, int32_t line);
    void gather_mask(uint32_t dtype, asc_local dst, asc_local src, asc_local mask, uint32_t pattern, uint32_t reduce,
                     uint32_t count, asc_walk walk, int32_t line);
    void transpose16(uint32_t dtype, asc_local dst, asc_local src, int32_t line);
    void sort32(uint32_t dtype, asc_local dst, asc_local src, asc_local index, uint32_t repeat, int32_t line);
    void mask_mode(uint32_t counter, int32_t line);
    void mask_set(uint64_t high, uint64_t low, int32_t line);
    void tile_function(uint32_t op, uint32_t dtype, asc_local dst, asc_local dst1, asc_local dst2, asc_local dst3,
                       asc_local src0, asc_local src1, asc_local src2, asc_local tmp, asc_tile tile, uint64_t scalar,
                       int32_t line);
    void merge_sorted(uint32_t dtype, asc_local dst, asc_lists lists, int32_t line);
    uint64_t merge_counts(int32_t line);
    void transpose_blocks(uint32_t dtype, asc_blocks16 blocks, asc_transpose_steps steps, int32_t line);

    // ---- scalar unit (scalar_unit.cpp)
    asc_block read_local(uint32_t dtype, asc_local tensor, uint64_t index, int32_t line);
    asc_block read_global(uint32_t dtype, asc_global address, int32_t line);
    void reread(uint32_t dtype, uint64_t where, uint32_t global, int32_t line);
    void write_local(uint32_t dtype, asc_local tensor, uint64_t index, uint64_t bits, int32_t line);
    void write_global(uint32_t dtype, asc_global address, uint64_t bits, int32_t line);
    void access_loop(uint32_t period, uint32_t count, uint32_t varied, asc_steps steps, int32_t line);
    void cache_clean(asc_global address, uint32_t entire, int32_t line);
    uint64_t gather_mask_count(int32_t line);
    void print(asc_text text, int32_t line);
    void dump(uint32_t dtype, asc_local tensor, uint32_t description, uint32_t count, int32_t line);
    void assert_failed(asc_text text, int32_t line);
    void misuse(asc_text text, int32_t line);

    // ---- synchronisation (synchronisation.cpp)
    void set_flag(uint32_t source, uint32_t destination, int32_t id, int32_t line);
    void wait_flag(uint32_t source, uint32_t destination, int32_t id, int32_t line);
    void barrier(uint32_t pipe, int32_t line);
    void sync_point(int32_t line);
    void soft_sync_point(asc_global workspace, asc_local ub, uint32_t used, int32_t line);
    void cross_set(uint32_t mode, uint32_t pipe, uint32_t flag, int32_t line);
    void cross_wait(uint32_t flag, int32_t line);
    void block_set(asc_global place, asc_local ub, asc_event event, int32_t line);
    void block_wait(asc_global place, asc_local ub, asc_event event, int32_t line);

    // ---- Matmul (matmul.cpp)
    void matmul(asc_matrix a, asc_matrix b, asc_matrix c, asc_matrix bias, asc_matmul_shape shape, uint32_t flags,
                int32_t line);

    // ---- the cube's basic API (cube.cpp, cube_loads.cpp)
    void load_fractals(asc_local dst, asc_local src, asc_fractals shape, uint32_t dtype, int32_t line);
    void mmad(asc_local c, asc_local a, asc_local b, asc_local bias, uint32_t c_dtype, uint32_t dtype,
              asc_mmad_shape shape, int32_t line);
    void load_global_fractals(asc_local dst, asc_global src, asc_fractals shape, uint32_t dtype, int32_t line);
    void load_transposed(asc_local dst, asc_local src, asc_fractals shape, uint32_t fractal_gap, uint32_t dtype,
                         int32_t line);
    void load_image(asc_local dst, asc_local src, asc_image image, uint64_t pad_bits, uint32_t dtype, int32_t line);
    void fill_fractals(asc_local dst, uint32_t repeat, uint32_t blocks, uint32_t gap, uint64_t bits, uint32_t dtype,
                       int32_t line);

    // ---- results out of L0C (fixpipe.cpp)
    void fixpipe(asc_global dst, asc_local src, asc_local scales, uint32_t dst_dtype, uint32_t src_dtype,
                 asc_fix_shape shape, uint64_t scale, int32_t line);
    void fixpipe_local(asc_local dst, asc_local src, asc_local scales, uint32_t dst_dtype, uint32_t src_dtype,
                       asc_fix_shape shape, uint64_t scale, int32_t line);
    void fix_registers(uint32_t which, uint64_t number, uint32_t nd_num, uint32_t src_nd_stride, uint32_t dst_nd_stride,
                       asc_local scales, int32_t line);

private:
    // A flag of one group of cores. Round n is complete when every core of the group has set the flag n + 1 times.
    struct CrossFlag {
        static constexpr uint32_t rounds = 32;               // twice what one core may be ahead of its waits
        std::unordered_map<uint32_t, uint32_t> sets, waits;  // by core
        Stamp stamps[rounds];
        uint32_t begun = 0;  // rounds that a core has set
    };
    struct Event {
        uint32_t number;   // in the order of their first use
        bool set = false;  // and not waited for
        Stamp stamp;       // of the last IBSet or IBWait; empty: there was none
        explicit Event(uint32_t number) : number(number) {}
    };
    // What the cores in a SyncAll have in common; the hard form has no workspace.
    struct Meeting {
        asc_global workspace = 0;
        uint32_t count = 0;  // of earlier meetings in it
    };
    struct Launch {
        uint32_t blocks = 0, kind = 0,
                 instances = 0;  // instances: blocks, or two vector cores per block of ASC_MIX
        uint32_t live = 0, ended = 0, waiting = 0;
        std::vector<uint8_t> begun;  // by instance
        // Flags between cores: CrossCoreSetFlag by mode, flag and group, IBSet by place in global memory.
        std::unordered_map<uint32_t, CrossFlag> crossed;
        std::unordered_map<uint64_t, Event> events;
        Meeting meeting;
    };

    // Records the author's line; `running` also returns the core that the record is for.
    void at(int32_t line) { diagnostics_.line = line; }
    Core &running(int32_t line);
    std::unique_ptr<Core> take_core(uint32_t instance);
    uint32_t physical_cores() const {
        const bool one_each = launch_.kind == ASC_AIC || launch_.kind == ASC_MIX_1_1;  // a cube core for each block
        return one_each ? options_.cube_cores : options_.vector_cores;
    }
    void check_leaks(Core &core);
    void work(uint64_t elements);

    // Checks of a record's arguments (checks.cpp). Each returns the checked value.
    uint32_t element_of(uint32_t dtype, uint32_t allowed, const char *what) const;
    Bytes bytes_of(const asc_local &tensor, uint64_t bytes, const char *what, const char *role) const;
    Bytes ub_bytes(const asc_local &tensor, uint64_t bytes, uint32_t align, const char *what, const char *role) const;
    Steps steps_of(Core &core, const asc_walk &walk, uint32_t element, const char *what) const;
    View view_of(const asc_local &tensor, uint32_t element, uint32_t block_stride, uint32_t repeat_stride,
                 const Steps &steps, const char *what, const char *role) const;
    void check_overlap(const View &dst, const View &src, const Steps &steps, bool accumulates, const char *what) const;
    [[noreturn]] void fail_earlier_repeat(const char *what, uint32_t dst, uint32_t src) const;

    // Happens-before (hazards.cpp): records an instruction's accesses to on-chip bytes and checks them against the
    // other pipes. The scalar unit waits for the other pipes by itself.
    void touch(Core &core, uint32_t pipe, const Bytes &bytes, bool write, const char *what);
    void touch(Core &core, const View &view, const Steps &steps, bool write, const char *what);
    void wait_for(Core &core, uint32_t pipe, uint32_t other);
    // Every core has the units and memories of its kind alone.
    void check_unit(uint32_t pipe, uint32_t space, const char *what) const;
    void order_global(Core &core, uint32_t pipe, uint32_t tensor, const Rows &rows, bool write, const char *what);
    bool in_order(const Core &core, uint32_t pipe, uint32_t tensor, const Rows &rows, bool write) const;
    asc_block block_around(const GlobalBytes &range) const;
    void make_dirty(Core &core, uint64_t cached, uint32_t tensor);
    void write_back(Core &core);
    void store_local(Core &core, uint32_t dtype, uint32_t space, uint32_t addr, uint64_t bits);
    void remember(uint32_t dtype, uint64_t where, bool global, bool write);

    // Loops of scalar accesses (access_loops.cpp).
    struct Cursor;
    void read_words(ScalarLoop &loop, bool varied);
    bool undisturbed(Core &core, const ScalarLoop &loop);
    bool undisturbed_local(Core &core, const ScalarLoop::Slot &slot, uint64_t begin, uint64_t end);
    bool undisturbed_global(Core &core, const ScalarLoop &loop, uint32_t number, uint64_t begin, uint64_t end);
    void one_access(const ScalarLoop &loop, uint32_t number);
    void whole_loop(Core &core, const ScalarLoop &loop);
    void claim_global(Core &core, const ScalarLoop &loop, uint32_t number, uint64_t begin, uint64_t end);
    Cursor cursor_at(Core &core, const ScalarLoop::Slot &slot, uint32_t element);
    void follow(Core &core, const ScalarLoop::Slot &slot, Cursor &at);
    void warn_of_cache(Core &core, const GlobalBytes &range, const char *what);

    // Instruction records.
    Instr instr(Kind kind, uint32_t pipe) const;
    Instr vector_instr(Family family, uint32_t op, uint32_t dtype, const Steps &steps) const;
    void emit(const Instr &instr) { sink_.take(instr); }
    void emit_load(const asc_local &dst, const asc_local &src, uint32_t dtype, uint64_t fractals);
    void overhead(Call call);
    void signal(uint32_t pipe, uint32_t token);
    void wait(uint32_t pipe, uint32_t token);
    void count(const char *name) { instruction_counts_.count(name); }

    // Parts of the methods above.
    struct Fix;
    Fix take_results(Core &core, const asc_local &src, asc_local scales, uint32_t dst_dtype, uint32_t src_dtype,
                     asc_fix_shape shape, uint64_t scale);
    void check_load(const asc_local &dst, const asc_local &src, const asc_fractals &shape, const char *what) const;
    void cast_packed(Core &core, bool packs, const asc_local &dst, const asc_local &src, uint32_t round,
                     const asc_walk &walk);
    void check_cast(uint32_t dst_dtype, uint32_t src_dtype, uint32_t round) const;
    struct Laid;
    GlobalBytes touch_matrix(Core &core, const Laid &matrix, bool write, uint32_t atomic, const char *what);
    Matrix matrix_at(const GlobalBytes &place, uint64_t offset, const Laid &matrix) const;
    Bytes take_tmp(Core &core, const asc_local &tmp, uint64_t needed, const Bytes *others, size_t n, const char *what);
    void check_burst(const asc_burst &burst, uint64_t global_gap, uint64_t local_gap, uint32_t element, uint32_t exact,
                     const char *what) const;
    bool drop_part(asc_burst &burst, uint32_t exact, const char *what);
    uint32_t touch_global(Core &core, uint32_t pipe, asc_global address, Rows &rows, uint32_t element, bool write,
                          uint32_t atomic, const char *what);
    void touch_rows(Core &core, uint32_t pipe, const asc_local &local, uint64_t bytes, uint64_t pitch, uint32_t count,
                    bool write, const char *what);
    void emit_copy(const Core &core, Kind kind, uint32_t pipe, const asc_local &local, asc_global global,
                   const Rows &rows, uint32_t dtype, uint32_t atomic);
    void combine_atomically(const GlobalBytes &range, uint8_t *data, uint8_t *valid, uint32_t mode,
                            uint32_t dtype) const;
    void check_all_run(const char *what) const;
    uint32_t cross_key(uint32_t mode, uint32_t flag, uint32_t core) const;
    uint32_t complete_rounds(uint32_t mode, uint32_t flag, uint32_t core) const;
    void drain(Core &core);
    void meet(Core &core, const Meeting &meeting);
    Event &event_at(asc_global place, const asc_event &event, const char *what);
    uint32_t poll(Core &core, asc_global workspace, const asc_local &ub, uint64_t bytes, uint64_t own,
                  const char *what);
    void post(Core &core, asc_global workspace, const asc_local &ub, uint64_t own, uint32_t value, const char *what);
    void change_event(Core &core, Event &event, asc_global place, const asc_local &ub, bool from, const char *what);
    QueueBuffer &buffer_in(Core &core, uint32_t queue, const asc_local &tensor, const char *what);
    Queue &queue_at(Core &core, uint32_t queue, const char *what);
    void enqueue_between(Core &core, uint32_t id, const asc_local &tensor, uint32_t source, uint32_t destination);
    void dequeue_between(Core &core, uint32_t id, uint32_t addr, uint32_t source, uint32_t destination);
    void mark_freed(Core &core, uint32_t space, uint32_t begin, uint32_t bytes, bool freed);
    uint32_t reserve_in(Core &core, const asc_local &rest, uint64_t bytes, const char *what);
    void place_queue(Core &core, uint32_t id, const Queue &made, uint32_t addr, uint32_t count);
    uint32_t check_queue(const Core &core, uint32_t id, uint32_t source, uint32_t destination, uint32_t count,
                         uint32_t bytes) const;
    uint32_t reserve(Core &core, uint32_t space, uint32_t bytes, const char *what);
    [[noreturn]] void name_buffers(Core &core, uint32_t space, uint64_t wanted, const char *what) const;

    ExecutorOptions options_;
    Sink &sink_;
    Diagnostics diagnostics_;
    CoreOrder order_;
    GlobalMemory global_;
    Launch launch_;
    bool launched_ = false;
    Core *core_ = nullptr;
    std::vector<std::unique_ptr<Core>> cores_;  // by instance, while the core is alive
    std::vector<std::unique_ptr<Core>> pool_;
    bool returned_ = false, dropped_output_ = false;
    int code_ = 0;
    uint64_t worked_ = 0;
    uint32_t launches_ = 0;
    bool data_dependent_ = false;
    std::unordered_map<uint64_t, uint32_t> dirty_lines_;  // lines in the data cache of a core, written by SetValue
    std::string printed_;
    AccessHistory history_;
    PlainCode code_before_ = {};  // the next access
    uint64_t looped_accesses_ = 0, looped_blocks_ = 0;
    std::vector<uint64_t> words_, values_;  // of the loop at work
    std::vector<PlainCode> varied_code_;
    size_t next_value_ = 0;
    InstructionCounts instruction_counts_;
};

}  // namespace sim
