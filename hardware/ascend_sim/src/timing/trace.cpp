#include "trace.h"

namespace sim {

const char *const PIPE_NAMES[ASC_PIPES] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};

namespace {

const char *vector_name(const Instr &instr) {
    switch (instr.family) {
        case Family::Vector: return instr.op < ASC_VECTOR_OPS ? VECTOR_NAMES[instr.op] : "vector";
        case Family::Library: return instr.op < ASC_LIBRARY_OPS ? LIBRARY_NAMES[instr.op] : "library";
        case Family::Tile: return instr.op < ASC_TILE_OPS ? TILE_NAMES[instr.op] : "tile";
        case Family::Cast: return "cast";
        case Family::Compare: return "compare";
        case Family::Select: return "select";
        case Family::Reduce:
        case Family::ReduceParts: return "reduce";
        case Family::Index: return "index";
        case Family::Brcb: return "brcb";
        case Family::Gather: return "gather";
        case Family::GatherMask: return "gather_mask";
        case Family::Transpose: return "transpose";
        case Family::Sort: return "sort";
        case Family::Merge: return "merge";
        case Family::CopyLocal: return "copy_local";
    }
    return "vector";
}

}  // namespace

const char *instruction_name(const Instr &instr) {
    switch (instr.kind) {
        case Kind::Vector: return vector_name(instr);
        case Kind::CopyIn: return "copy_in";
        case Kind::CopyOut: return "copy_out";
        case Kind::PlainCode: return "code";
        case Kind::ScalarLocal: return "local_access";
        case Kind::ScalarGlobal: return "global_access";
        case Kind::Cube: return "mmad";
        case Kind::Load: return "load";
        case Kind::Matmul: return "matmul";
        default: return "control";
    }
}

Trace::Trace(FILE *file, const Chip &chip) : file_(file), chip_(chip) { std::fputs("{\"traceEvents\":[", file_); }

void Trace::name_core(uint32_t block, uint32_t core) {
    if (!cores_.insert(block).second) return;
    char name[48];
    if (block == core) std::snprintf(name, sizeof name, "core %u", core);
    else std::snprintf(name, sizeof name, "core %u, block %u", core, block);
    name_process(block, name, block + 1);
}

void Trace::name_process(uint32_t process, const char *name, uint32_t order) {
    std::fprintf(file_, "%s\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"%s\"}}",
                 events_++ ? "," : "", process, name);
    std::fprintf(file_, ",\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,\"args\":{\"sort_index\":%u}}",
                 process, order);
}

void Trace::name_pipe(uint32_t block, uint8_t pipe) {
    if (!pipes_.emplace(block, pipe).second) return;
    std::fprintf(file_, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}}",
                 block, pipe, PIPE_NAMES[pipe]);
}

void Trace::add(uint32_t block, uint32_t core, uint8_t pipe, const char *name, int32_t line, Ticks start, Ticks end) {
    if (events_ >= LIMIT || pipe >= ASC_PIPES) return;
    name_core(block, core);
    name_pipe(block, pipe);
    std::fprintf(
        file_,
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,\"args\":{\"line\":%d}}", name,
        block, pipe, chip_.microseconds(start), chip_.microseconds(end - start), line);
    ++events_;
}

void Trace::add_launch(uint32_t number, uint32_t blocks, uint32_t cores, Ticks start, Ticks end) {
    if (cores_.insert(LAUNCHES).second) name_process(LAUNCHES, "launches", 0);
    std::fprintf(
        file_,
        ",\n{\"ph\":\"X\",\"cat\":\"launch\",\"name\":\"launch %u\",\"pid\":%u,\"tid\":0,\"ts\":%.6f,\"dur\":%.6f,"
        "\"args\":{\"blocks\":%u,\"cores\":%u}}",
        number, LAUNCHES, chip_.microseconds(start), chip_.microseconds(end - start), blocks, cores);
    ++events_;
}

void Trace::finish() {
    std::fputs("\n]}\n", file_);
    std::fflush(file_);
}

}  // namespace sim
