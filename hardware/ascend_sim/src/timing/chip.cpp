#include "chip.h"

#include <cmath>
#include <cstdlib>
#include <map>

namespace sim {

const std::array<const char *, ASC_VECTOR_OPS> VECTOR_NAMES = {"add",
                                                               "sub",
                                                               "mul",
                                                               "div",
                                                               "max",
                                                               "min",
                                                               "and",
                                                               "or",
                                                               "add_relu",
                                                               "sub_relu",
                                                               "mul_add_dst",
                                                               "fused_mul_add",
                                                               "fused_mul_add_relu",
                                                               "exp",
                                                               "ln",
                                                               "abs",
                                                               "sqrt",
                                                               "rsqrt",
                                                               "reciprocal",
                                                               "relu",
                                                               "not",
                                                               "copy",
                                                               "adds",
                                                               "muls",
                                                               "maxs",
                                                               "mins",
                                                               "leaky_relu",
                                                               "axpy",
                                                               "shift_left",
                                                               "shift_right",
                                                               "duplicate"};
const std::array<const char *, ASC_LIBRARY_OPS> LIBRARY_NAMES = {
    "tanh",  "sigmoid", "erf",         "erfc",           "sin",   "cos",   "tan",       "asin",
    "acos",  "atan",    "sinh",        "cosh",           "asinh", "acosh", "atanh",     "floor",
    "ceil",  "round",   "trunc",       "frac",           "sign",  "log",   "log2",      "log10",
    "exp",   "gelu",    "faster_gelu", "faster_gelu_v2", "silu",  "swish", "lgamma",    "digamma",
    "power", "fmod",    "xor",         "swiglu",         "geglu", "reglu", "clamp_max", "clamp_min"};
const std::array<const char *, ASC_TILE_OPS> TILE_NAMES = {
    "softmax",       "log_softmax",      "sum",      "mean",    "cumsum",    "broadcast",  "pad",
    "unpad",         "layer_norm",       "rms_norm", "topk",    "sort",      "extract",    "simple_softmax",
    "softmax_flash", "softmax_flash_v2", "quant",    "dequant", "antiquant", "group_norm", "select_bytes"};
const std::array<const char *, BASIC_ROWS> BASIC_NAMES = {"cast",   "compare",     "select",    "index", "brcb",
                                                          "gather", "gather_mask", "transpose", "sort",  "merge"};
const std::array<const char *, REDUCE_ROWS> REDUCE_NAMES = {"repeat_sum", "block_sum", "pair_sum",
                                                            "repeat_max", "block_max", "pair_max",
                                                            "repeat_min", "block_min", "pair_min"};
const std::array<const char *, CALLS> CALL_NAMES = {"tpipe", "init_buffer", "queue", "flag", "mask", "print", "launch"};

namespace {

// An array with fewer names than entries would end in null pointers.
template <size_t N>
void check_names(const std::array<const char *, N> &names) {
    for (const char *name : names)
        if (name == nullptr) throw ChipError("an operation has no name in chip.cpp");
}

// Reads each figure by its key and records the keys that were read.
class Reader {
public:
    explicit Reader(const Chip::Pairs &pairs) {
        for (const auto &[key, value] : pairs)
            if (!values_.emplace(key, value).second) throw ChipError("chip figure " + key + " is given twice");
    }
    std::string text(const std::string &key) {
        auto found = values_.find(key);
        if (found == values_.end()) throw ChipError("chip figure " + key + " is missing");
        std::string value = found->second;
        values_.erase(found);
        return value;
    }
    void read(const std::string &key, double &figure) {
        std::string value = text(key);
        char *end = nullptr;
        figure = std::strtod(value.c_str(), &end);
        if (end == value.c_str() || *end || !std::isfinite(figure) || figure < 0 || figure > 1e15)
            throw ChipError("chip figure " + key + " is no usable number: " + value);
    }
    void positive(const std::string &key, double &figure) {
        read(key, figure);
        if (figure <= 0) throw ChipError("chip figure " + key + " must be above zero");
    }
    void read(const std::string &key, Row &row) {
        read(key + ".startup", row.startup);
        read(key + ".repeat", row.repeat);
        read(key + ".repeat16", row.repeat16);
    }
    template <class Figure, size_t N>
    void read_all(const std::string &group, const std::array<const char *, N> &names, std::array<Figure, N> &figures) {
        check_names(names);
        for (size_t i = 0; i < N; ++i) read(group + "." + names[i], figures[i]);
    }
    void finish() const {
        if (!values_.empty()) throw ChipError("unknown chip figure " + values_.begin()->first);
    }

private:
    std::map<std::string, std::string> values_;
};

void read_sizes(Reader &from, Figures &to) {
    from.positive("clock_mhz", to.clock_mhz);
    from.positive("vector_cores", to.vector_cores);
    from.positive("cube_cores", to.cube_cores);
    from.positive("ub_bytes", to.ub_bytes);
    from.positive("l1_bytes", to.l1_bytes);
    from.positive("l0a_bytes", to.l0a_bytes);
    from.positive("l0b_bytes", to.l0b_bytes);
    from.positive("l0c_bytes", to.l0c_bytes);
}

void read_control(Reader &from, Figures &to) {
    from.read("launch.base_us", to.launch.base_us);
    from.read("launch.core_us", to.launch.core_us);
    from.read("launch.cube_us", to.launch.cube_us);
    from.read("launch.block_cycles", to.launch.block_cycles);
    from.read("launch.sync_cycles", to.launch.sync_cycles);
    from.read("launch.event_cycles", to.launch.event_cycles);
    from.read("scalar.issue", to.scalar.issue);
    from.read("scalar.block", to.scalar.block);
    from.read("scalar.integer", to.scalar.integer);
    from.read("scalar.float", to.scalar.floats);
    from.read("scalar.division", to.scalar.division);
    from.read("scalar.local", to.scalar.local);
    from.read("scalar.load_use", to.scalar.load_use);
    from.read("scalar.global_hit", to.scalar.global_hit);
    from.read("scalar.global_miss", to.scalar.global_miss);
    from.positive("scalar.cache_bytes", to.scalar.cache_bytes);
    from.positive("scalar.queue_depth", to.scalar.queue_depth);
    from.read_all("call", CALL_NAMES, to.call);
}

void read_memory(Reader &from, Figures &to) {
    from.positive("memory.hbm_gbs", to.memory.hbm_gbs);
    from.positive("memory.hbm_write", to.memory.hbm_write);
    from.positive("memory.hbm_core_gbs", to.memory.hbm_core_gbs);
    from.positive("memory.l2_gbs", to.memory.l2_gbs);
    from.positive("memory.l2_core_gbs", to.memory.l2_core_gbs);
    from.positive("memory.l1_core_gbs", to.memory.l1_core_gbs);
    from.positive("memory.write_core_gbs", to.memory.write_core_gbs);
    from.positive("memory.atomic", to.memory.atomic);
    from.positive("memory.l2_bytes", to.memory.l2_bytes);
    from.positive("memory.l2_usable", to.memory.l2_usable);
    from.read("copy.issue", to.copy.issue);
    from.read("copy.burst", to.copy.burst);
    from.read("copy.page", to.copy.page);
    from.read("copy.turn", to.copy.turn);
    from.read("copy.latency", to.copy.latency);
    from.read("copy.write_latency", to.copy.write_latency);
    from.read("copy.shared", to.copy.shared);
    from.read("copy.contended", to.copy.contended);
    from.read("copy.window", to.copy.window);
}

void read_units(Reader &from, Figures &to) {
    from.read_all("vector", VECTOR_NAMES, to.vector);
    from.read_all("basic", BASIC_NAMES, to.basic);
    from.read_all("reduce", REDUCE_NAMES, to.reduce);
    from.read("unit.tail", to.unit.tail);
    from.read("unit.read_read", to.unit.read_read);
    from.read("unit.read_write", to.unit.read_write);
    from.read("unit.local_copy", to.unit.local_copy);
    from.read("unit.local_copy_repeat", to.unit.local_copy_repeat);
    from.positive("unit.row_reduce", to.unit.row_reduce);
    from.read("pass.startup", to.pass.startup);
    from.read("pass.repeat", to.pass.repeat);
    from.read("pass.repeat16", to.pass.repeat16);
    from.read("pass.row", to.pass.row);
    from.read_all("library", LIBRARY_NAMES, to.library);
    from.read_all("tile", TILE_NAMES, to.tile);
}

void read_cube(Reader &from, Figures &to) {
    from.read("cube.startup", to.cube.startup);
    from.read("cube.step", to.cube.step);
    from.positive("cube.l0a_bytes", to.cube.l0a_bytes);
    from.positive("cube.l0b_bytes", to.cube.l0b_bytes);
    from.positive("cube.l1_bytes", to.cube.l1_bytes);
    from.positive("cube.table_bytes", to.cube.table_bytes);
    from.read("cube.load_latency", to.cube.load_latency);
    from.positive("cube.fix_gbs", to.cube.fix_gbs);
    from.read("cube.fix_latency", to.cube.fix_latency);
    from.read("matmul.call", to.matmul.call);
    from.read("matmul.step", to.matmul.step);
    from.read("matmul.drain", to.matmul.drain);
    from.read("matmul.overlap", to.matmul.overlap);
}

}  // namespace

Ticks ticks(double cycles) { return std::llround(cycles * CYCLE); }

Rate rate(double bytes_per_cycle) { return Rate{std::llround(CYCLE * 1024.0 / bytes_per_cycle)}; }

Chip::Chip(const Pairs &pairs) {
    Reader reader(pairs);
    name = reader.text("name");
    read_sizes(reader, *this);
    read_control(reader, *this);
    read_memory(reader, *this);
    read_units(reader, *this);
    read_cube(reader, *this);
    reader.finish();
}

uint32_t Chip::cores(uint32_t core_kind) const {
    const bool one_each = core_kind == ASC_AIC || core_kind == ASC_MIX_1_1;  // a cube core for each block
    return static_cast<uint32_t>(one_each ? cube_cores : vector_cores);
}

}  // namespace sim
