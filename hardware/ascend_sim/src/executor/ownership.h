// Who holds each byte of a tensor, to find accesses of several cores that nothing orders.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core_order.h"
#include "pages.h"

namespace sim {

// An access of an agent at a time of its core. Those of one kind (reads, atomic writes of one operation and type) meet
// freely, as they commute; all others, and plain writes (kind 0), meet only what is ordered before them.
struct Claim {
    uint32_t agent, time, kind;
    bool operator<(const Claim &other) const {
        return agent != other.agent ? agent < other.agent : time != other.time ? time < other.time : kind < other.kind;
    }
};

// Sets of claims, by number; 0 is the empty set. Numbers are valid within one epoch.
class Claims {
public:
    explicit Claims(const CoreOrder &order) : order_(order), sets_(1) {}

    uint32_t alone(uint32_t core, uint32_t pipe, uint32_t kind);
    // True if something in the set collides with `number`, a set of one.
    bool conflict(uint32_t set, uint32_t number) const;
    // The set after `number`, a set of one, is added: what is ordered before it is left out.
    uint32_t joined(uint32_t set, uint32_t number);
    // "core 3", or "other cores" for a set of several.
    std::string name(uint32_t set) const;
    // Memory that all sets take, in pieces of eight bytes.
    uint64_t pieces() const { return pieces_; }

private:
    uint32_t number_of(const std::vector<Claim> &claims);
    bool before(const Claim &claim, uint32_t core) const;

    const CoreOrder &order_;
    uint32_t epoch_ = 0;
    std::vector<std::vector<Claim>> sets_;
    std::map<std::vector<Claim>, uint32_t> numbers_;
    std::unordered_map<uint64_t, uint32_t> joined_;
    uint64_t pieces_ = 0;
    Claim last_ = {};
    uint32_t last_number_ = 0;
};

// Memory is held in pieces, so it takes more of the device's own memory the more pieces cores cut it into.
class Ownership {
public:
    explicit Ownership(uint64_t bytes);

    // The first set of claims on [begin, end) that a set of one collides with, or 0.
    uint32_t conflict(uint64_t begin, uint64_t end, uint32_t number, uint32_t epoch, const Claims &claims) const;
    // Returns for how many more pieces there is room now.
    uint64_t claim(uint64_t begin, uint64_t end, uint32_t number, uint32_t epoch, Claims &claims);

private:
    static constexpr uint64_t group_bytes = 1024;
    struct Piece {
        uint16_t begin, end;
        uint32_t holder;
    };
    struct Group {
        uint32_t epoch = 0;
        bool cut = false;
        Piece whole = {};           // the held part, while it is one piece with one set of holders
        std::vector<Piece> pieces;  // in order, if it is cut; no two that touch have the same holders
    };
    uint64_t claim_in(Group &group, uint32_t begin, uint32_t end, uint32_t number, Claims &claims);

    Pages<Group> groups_;
    std::vector<Piece> changed_;
};

}  // namespace sim
