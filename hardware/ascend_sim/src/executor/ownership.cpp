#include "ownership.h"

#include <algorithm>
#include <cstring>

namespace sim {

// ---- sets of claims ------------------------------------------------------------------------------------------------

uint32_t Claims::number_of(const std::vector<Claim> &claims) {
    const auto [place, is_new] = numbers_.emplace(claims, static_cast<uint32_t>(sets_.size()));
    if (is_new) sets_.push_back(claims);
    return place->second;
}

uint32_t Claims::alone(uint32_t core, uint32_t pipe, bool shared) {
    const Claim claim = {CoreOrder::agent(core, pipe), order_.time(core), shared};
    if (epoch_ != order_.epoch()) {
        epoch_ = order_.epoch();
        sets_.assign(1, {});
        numbers_.clear();
        joined_.clear();
    } else if (claim.agent == last_.agent && claim.time == last_.time && claim.shared == last_.shared) {
        return last_number_;
    }
    last_ = claim;
    return last_number_ = number_of({claim});
}

bool Claims::before(const Claim &claim, uint32_t core) const {
    return CoreOrder::core_of(claim.agent) == core || order_.knows(core, claim.agent, claim.time);
}

bool Claims::conflict(uint32_t set, uint32_t number) const {
    if (set == number) return false;
    const Claim &claim = sets_[number].front();
    return std::any_of(sets_[set].begin(), sets_[set].end(), [&](const Claim &other) {
        return !(other.shared && claim.shared) && !before(other, CoreOrder::core_of(claim.agent));
    });
}

std::string Claims::name(uint32_t set) const {
    if (sets_[set].size() > 1) return "other cores";
    return "core " + std::to_string(CoreOrder::core_of(sets_[set].front().agent));
}

// The knowledge of a core is fixed by its time, so the result for two numbers is always the same.
uint32_t Claims::joined(uint32_t set, uint32_t number) {
    const Claim claim = sets_[number].front();
    if (set == 0 || set == number || !claim.shared) return number;
    const auto [place, is_new] = joined_.emplace(uint64_t{set} << 32 | number, 0);
    if (!is_new) return place->second;
    std::vector<Claim> left;
    for (const Claim &other : sets_[set]) {
        const bool own = CoreOrder::core_of(other.agent) == CoreOrder::core_of(claim.agent);
        const bool covered =
            own ? other.agent == claim.agent && other.shared : before(other, CoreOrder::core_of(claim.agent));
        if (!covered) left.push_back(other);
    }
    left.push_back(claim);
    std::sort(left.begin(), left.end());
    return place->second = number_of(left);
}

// ---- bytes -----------------------------------------------------------------------------------------------------------

Ownership::Ownership(uint64_t bytes) : groups_((bytes + group_bytes - 1) / group_bytes) {}

uint32_t Ownership::conflict(uint64_t begin, uint64_t end, uint32_t number, uint32_t epoch,
                             const Claims &claims) const {
    for (uint64_t at = begin; at < end;) {
        const uint64_t index = at / group_bytes, start = index * group_bytes, stop = std::min(end, start + group_bytes);
        const Group *group = groups_.find(index);
        const uint32_t from = static_cast<uint32_t>(at - start), to = static_cast<uint32_t>(stop - start);
        at = stop;
        if (!group || group->epoch != epoch) continue;
        if (!group->detailed) {
            if (from >= group->end || to <= group->begin) continue;
            if (claims.conflict(group->holder, number)) return group->holder;
            continue;
        }
        uint32_t last = 0;
        for (uint32_t i = from; i < to; ++i) {
            const uint32_t holder = group->detail->holder[i];
            if (holder != last && claims.conflict(last = holder, number)) return holder;
        }
    }
    return 0;
}

void Ownership::claim(uint64_t begin, uint64_t end, uint32_t number, uint32_t epoch, Claims &claims) {
    for (uint64_t at = begin; at < end;) {
        const uint64_t index = at / group_bytes, start = index * group_bytes, stop = std::min(end, start + group_bytes);
        if (index >= groups_.size()) return;
        Group &group = groups_.at(index);
        if (group.epoch != epoch) {
            group.epoch = epoch;
            group.detailed = false;
            group.holder = 0;
        }
        claim_in(group, static_cast<uint32_t>(at - start), static_cast<uint32_t>(stop - start), number, claims);
        at = stop;
    }
}

void Ownership::claim_in(Group &group, uint32_t begin, uint32_t end, uint32_t number, Claims &claims) {
    if (!group.detailed) {
        const bool first = group.holder == 0;
        if (first || (group.holder == number && begin <= group.end && end >= group.begin)) {
            group.begin = static_cast<uint16_t>(first ? begin : std::min<uint32_t>(group.begin, begin));
            group.end = static_cast<uint16_t>(first ? end : std::max<uint32_t>(group.end, end));
            group.holder = number;
            return;
        }
        if (begin == group.begin && end == group.end) {
            group.holder = claims.joined(group.holder, number);
            return;
        }
        if (!group.detail) group.detail = std::make_unique<Detail>();
        std::memset(group.detail->holder, 0, sizeof group.detail->holder);
        std::fill(group.detail->holder + group.begin, group.detail->holder + group.end, group.holder);
        group.detailed = true;
    }
    uint32_t last = 0, joined = number;
    for (uint32_t i = begin; i < end; ++i) {
        uint32_t &holder = group.detail->holder[i];
        if (holder != last) joined = claims.joined(last = holder, number);
        holder = joined;
    }
}

}  // namespace sim
