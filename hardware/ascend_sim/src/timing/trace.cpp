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
        case Kind::ScalarBlocks: return "code";
        case Kind::ScalarLocal: return "local_access";
        case Kind::ScalarGlobal: return "global_access";
        case Kind::Cube: return "mmad";
        case Kind::Load: return "load";
        case Kind::Matmul: return "matmul";
        default: return "control";
    }
}

Trace::Trace(FILE *file, const Chip &chip) : file_(file), chip_(chip) { std::fputs("{\"traceEvents\":[", file_); }

void Trace::name_pipe(uint32_t core, uint8_t pipe) {
    if (!named_.emplace(core, pipe).second) return;
    std::fprintf(file_, "%s\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}}",
                 events_++ ? "," : "", core, pipe, PIPE_NAMES[pipe]);
}

void Trace::add(uint32_t core, uint8_t pipe, const Instr &instr, Ticks start, Ticks end) {
    if (events_ >= LIMIT || pipe >= ASC_PIPES) return;
    name_pipe(core, pipe);
    std::fprintf(
        file_,
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,\"args\":{\"line\":%d}}",
        instruction_name(instr), core, pipe, chip_.microseconds(start), chip_.microseconds(end - start), instr.line);
    ++events_;
}

void Trace::finish() {
    std::fputs("\n]}\n", file_);
    std::fflush(file_);
}

}  // namespace sim
