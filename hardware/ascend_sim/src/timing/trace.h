// A Chrome (or Perfetto) trace: one process per block, named after the core it ran on, one thread per pipe; one more process
// for the launches.
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
    void add(uint32_t block, uint32_t core, uint8_t pipe, const char *name, int32_t line, Ticks start, Ticks end);
    // Launches are numbered from 1; `start` is when the first core begins.
    void add_launch(uint32_t number, uint32_t blocks, uint32_t cores, Ticks start, Ticks end);
    void finish();

private:
    void name_core(uint32_t block, uint32_t core);
    void name_pipe(uint32_t block, uint8_t pipe);
    void name_process(uint32_t process, const char *name, uint32_t order);

    static constexpr uint64_t LIMIT = 500000;       // events; viewers cannot load more
    static constexpr uint32_t LAUNCHES = 1u << 30;  // process of the launches: no block has this number
    FILE *file_;
    const Chip &chip_;
    uint64_t events_ = 0;
    std::set<uint32_t> cores_;
    std::set<std::pair<uint32_t, uint8_t>> pipes_;
};

}  // namespace sim
