// A Chrome (or Perfetto) trace of the pipes: one process per core, one thread per pipe.
#pragma once
#include <cstdint>
#include <cstdio>
#include <set>
#include <utility>

#include "chip.h"

namespace sim {

extern const char *const PIPE_NAMES[ASC_PIPES];
const char *instruction_name(const Instr &instr);

class Trace {
public:
    Trace(FILE *file, const Chip &chip);
    void add(uint32_t core, uint8_t pipe, const Instr &instr, Ticks start, Ticks end);
    void finish();

private:
    void name_pipe(uint32_t core, uint8_t pipe);

    static constexpr uint64_t LIMIT = 500000;  // events; viewers cannot load more
    FILE *file_;
    const Chip &chip_;
    uint64_t events_ = 0;
    std::set<std::pair<uint32_t, uint8_t>> named_;
};

}  // namespace sim
