// Happens-before between the cores of a launch: which accesses of other cores a core knows to be over.
//
// Accesses are numbered by agent, which is one pipe of one core, and by the time of its core. A core's time grows with
// each flag between cores that it sets or waits for, and the flag carries a stamp: what the setting core knows to be
// over. SyncAll and the ends of launches order everything: they start a new epoch, in which nothing of the earlier
// ones counts.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "clocks.h"

namespace sim {

// By agent, the last time at which its accesses are over; 0: none.
using Stamp = std::vector<uint32_t>;

class CoreOrder {
public:
    static constexpr uint32_t agent(uint32_t core, uint32_t pipe) { return core * ASC_PIPES + pipe; }
    static constexpr uint32_t core_of(uint32_t agent) { return agent / ASC_PIPES; }

    uint32_t epoch() const { return epoch_; }
    uint32_t time(uint32_t core) const { return core < cores_.size() ? cores_[core].time : 1; }
    bool knows(uint32_t core, uint32_t agent, uint32_t time) const {
        return core < cores_.size() && agent < cores_[core].known.size() && cores_[core].known[agent] >= time;
    }

    void meet() {
        ++epoch_;
        for (Known &core : cores_) core.known.clear();  // times go on: a stamp may be older than the epoch
    }
    // What `pipe` of a core knows to be over: its own instructions, and those of other pipes that it has waited for.
    Stamp release(uint32_t core, const PipeClocks &clocks, const Clock &reached);
    void acquire(uint32_t core, const Stamp &stamp);
    static void join(Stamp &stamp, const Stamp &other);

private:
    struct Known {
        uint32_t time = 1;
        Stamp known;
    };
    Known &at(uint32_t core) {
        if (core >= cores_.size()) cores_.resize(core + 1u);
        return cores_[core];
    }

    uint32_t epoch_ = 1;
    std::vector<Known> cores_;
};

inline void CoreOrder::join(Stamp &stamp, const Stamp &other) {
    if (stamp.size() < other.size()) stamp.resize(other.size(), 0);
    for (size_t i = 0; i < other.size(); ++i) stamp[i] = std::max(stamp[i], other[i]);
}

inline Stamp CoreOrder::release(uint32_t core, const PipeClocks &clocks, const Clock &reached) {
    Known &own = at(core);
    if (own.known.size() < agent(core + 1, 0)) own.known.resize(agent(core + 1, 0), 0);
    for (uint32_t pipe = 0; pipe < ASC_PIPES; ++pipe)
        if (reached.over[pipe] >= clocks.issued(pipe)) own.known[agent(core, pipe)] = own.time;
    ++own.time;
    return own.known;
}

inline void CoreOrder::acquire(uint32_t core, const Stamp &stamp) {
    Known &own = at(core);
    join(own.known, stamp);
    ++own.time;
}

}  // namespace sim
