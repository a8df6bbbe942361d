#include "ownership.h"

#include <algorithm>

namespace sim {

// ---- sets of claims ------------------------------------------------------------------------------------------------

uint32_t Claims::number_of(const std::vector<Claim> &claims) {
    const auto [place, is_new] = numbers_.emplace(claims, static_cast<uint32_t>(sets_.size()));
    if (is_new) {
        sets_.push_back(claims);
        pieces_ += 12 + 3 * claims.size();  // twice, here and in a node of `numbers_`
    }
    return place->second;
}

uint32_t Claims::alone(uint32_t core, uint32_t pipe, uint32_t kind) {
    const Claim claim = {CoreOrder::agent(core, pipe), order_.time(core), kind};
    if (epoch_ != order_.epoch()) {
        epoch_ = order_.epoch();
        pieces_ = 0;
        sets_.assign(1, {});
        numbers_.clear();
        joined_.clear();
    } else if (claim.agent == last_.agent && claim.time == last_.time && claim.kind == last_.kind) {
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
        return !(claim.kind && other.kind == claim.kind) && !before(other, CoreOrder::core_of(claim.agent));
    });
}

std::string Claims::name(uint32_t set) const {
    if (sets_[set].size() > 1) return "other cores";
    return "core " + std::to_string(CoreOrder::core_of(sets_[set].front().agent));
}

// The knowledge of a core is fixed by its time, so the result for two numbers is always the same.
uint32_t Claims::joined(uint32_t set, uint32_t number) {
    const Claim claim = sets_[number].front();
    if (set == 0 || set == number || !claim.kind) return number;
    const auto [place, is_new] = joined_.emplace(uint64_t{set} << 32 | number, 0);
    if (!is_new) return place->second;
    pieces_ += 5;
    std::vector<Claim> left;
    for (const Claim &other : sets_[set]) {
        // What does not commute with `claim` stays: a later access that commutes with `claim` may not know it.
        const bool own = CoreOrder::core_of(other.agent) == CoreOrder::core_of(claim.agent);
        const bool known = own ? other.agent == claim.agent : before(other, CoreOrder::core_of(claim.agent));
        if (!known || other.kind != claim.kind) left.push_back(other);
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
        const Piece *piece = group->pieces.data(), *last = piece + group->pieces.size();
        if (!group->cut) piece = &group->whole, last = piece + 1;
        else piece = std::partition_point(piece, last, [&](const Piece &each) { return each.end <= from; });
        for (; piece != last && piece->begin < to; ++piece)
            if (piece->end > from && claims.conflict(piece->holder, number)) return piece->holder;
    }
    return 0;
}

uint64_t Ownership::claim(uint64_t begin, uint64_t end, uint32_t number, uint32_t epoch, Claims &claims) {
    uint64_t room = 0;
    for (uint64_t at = begin; at < end;) {
        const uint64_t index = at / group_bytes, start = index * group_bytes, stop = std::min(end, start + group_bytes);
        if (index >= groups_.size()) break;
        Group &group = groups_.at(index);
        if (group.epoch != epoch) {
            group.epoch = epoch;
            group.cut = false;
            group.whole = {};
        }
        room += claim_in(group, static_cast<uint32_t>(at - start), static_cast<uint32_t>(stop - start), number, claims);
        at = stop;
    }
    return room;
}

uint64_t Ownership::claim_in(Group &group, uint32_t begin, uint32_t end, uint32_t number, Claims &claims) {
    const auto piece_of = [](uint32_t from, uint32_t to, uint32_t holder) {
        return Piece{static_cast<uint16_t>(from), static_cast<uint16_t>(to), holder};
    };
    std::vector<Piece> &pieces = group.pieces;
    const size_t room = pieces.capacity();
    if (!group.cut) {
        Piece &whole = group.whole;
        if (whole.holder == 0) {
            whole = piece_of(begin, end, number);
            return 0;
        }
        if (whole.holder == number && begin <= whole.end && end >= whole.begin) {
            whole = piece_of(std::min<uint32_t>(whole.begin, begin), std::max<uint32_t>(whole.end, end), number);
            return 0;
        }
        if (begin == whole.begin && end == whole.end) {
            whole.holder = claims.joined(whole.holder, number);
            return 0;
        }
        pieces.assign(1, whole);
        group.cut = true;
    }
    auto first =
        std::partition_point(pieces.begin(), pieces.end(), [&](const Piece &each) { return each.end <= begin; });
    const bool follows = first != pieces.begin() && (first - 1)->end == begin;
    if (first == pieces.end() || first->begin >= end) {
        const bool precedes = first != pieces.end() && first->begin == end && first->holder == number;
        if (follows && (first - 1)->holder == number) {
            (first - 1)->end = precedes ? first->end : static_cast<uint16_t>(end);
            if (precedes) pieces.erase(first);
        } else if (precedes) {
            first->begin = static_cast<uint16_t>(begin);
        } else {
            pieces.insert(first, piece_of(begin, end, number));
        }
        return pieces.capacity() - room;
    }
    const bool inside = first->begin <= begin && end <= first->end;
    if (inside && claims.joined(first->holder, number) == first->holder) return pieces.capacity() - room;
    // The pieces that overlap or touch the range are replaced.
    changed_.clear();
    const auto put = [&](uint32_t from, uint32_t to, uint32_t holder) {
        if (from >= to) return;
        const bool goes_on = !changed_.empty() && changed_.back().end == from && changed_.back().holder == holder;
        if (goes_on) changed_.back().end = static_cast<uint16_t>(to);
        else changed_.push_back(piece_of(from, to, holder));
    };
    if (follows) --first;
    auto last = first;
    uint32_t at = begin;
    for (; last != pieces.end() && last->begin <= end; ++last) {
        const uint32_t from = std::max<uint32_t>(at, std::min<uint32_t>(end, last->begin));
        const uint32_t to = std::min<uint32_t>(end, last->end);
        put(last->begin, std::min<uint32_t>(last->end, begin), last->holder);
        put(at, from, number);
        if (from < to) put(from, to, claims.joined(last->holder, number));
        at = std::max(from, to);
        put(std::max<uint32_t>(last->begin, end), last->end, last->holder);
    }
    put(at, end, number);
    const size_t old = static_cast<size_t>(last - first), kept = std::min(old, changed_.size());
    const auto behind = std::copy_n(changed_.begin(), kept, first);
    if (kept < old) pieces.erase(behind, last);
    else pieces.insert(behind, changed_.begin() + static_cast<std::ptrdiff_t>(kept), changed_.end());
    return pieces.capacity() - room;
}

}  // namespace sim
