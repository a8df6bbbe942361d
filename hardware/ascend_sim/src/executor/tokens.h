// Tokens match a Signal with its Wait. They are unique within a core and small, because the timing pass keeps a table.
#pragma once
#include <cstdint>

namespace sim {

constexpr uint32_t automatic_token(uint32_t pipe) { return pipe; }                   // 0 to 15
constexpr uint32_t flag_token(uint32_t source, uint32_t destination, uint32_t id) {  // 64 to 575
    return 64 + (source * 8 + destination) * 8 + id;
}
// 1024 to 9215: of a buffer of a queue with buffers, whose number is below 64 (see Queue::number).
constexpr uint32_t ready_token(uint32_t number, uint32_t slot) { return 1024 + 2 * (number * 64 + slot); }
constexpr uint32_t free_token(uint32_t number, uint32_t slot) { return ready_token(number, slot) + 1; }

// Tokens that the cores of a launch share: rounds of CrossCoreSetFlag below the tokens of IBSet and IBWait.
constexpr uint32_t shared_token(uint32_t number) { return 0x80000000u + number; }
constexpr uint32_t event_token(uint32_t number) { return 0xc0000000u + number; }

}  // namespace sim
