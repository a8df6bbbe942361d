// Tokens that tie a Signal to its Wait, unique within a core.
#pragma once
#include <cstdint>

namespace sim {

constexpr uint32_t automatic_token(uint32_t pipe) { return 1u << 28 | pipe; }
constexpr uint32_t flag_token(uint32_t source, uint32_t destination, uint32_t id) { return 2u << 28 | source << 16 | destination << 8 | id; }
constexpr uint32_t ready_token(uint32_t queue, uint32_t slot) { return 3u << 28 | queue << 8 | slot; }
constexpr uint32_t free_token(uint32_t queue, uint32_t slot) { return 4u << 28 | queue << 8 | slot; }

}  // namespace sim
