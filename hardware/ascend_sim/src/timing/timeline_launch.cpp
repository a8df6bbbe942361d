// Launches: overhead, placement of blocks, shared memory bandwidth, synchronisation of cores.
#include <algorithm>

#include "timeline.h"
#include "timeline_core.h"

namespace sim {

void Timeline::begin_launch(const Instr &instr) {
    launch_ = Launch{};
    launch_.kind = instr.b;
    const uint32_t lanes = instr.b == ASC_MIX ? 2 : 1;  // vector cores of a block; they share its cube
    launch_.blocks = std::max(1u, instr.a) * lanes;
    launch_.cores = std::min(launch_.blocks, chip_.cores(instr.b));
    launch_.cubes.assign(std::max(1u, launch_.cores / lanes), Way{});
    const double once = chip_.launch.base_us + (instr.b == ASC_AIV ? 0.0 : chip_.launch.cube_us);
    const Ticks overhead = chip_.from_us(once) + chip_.from_us(chip_.launch.core_us) * launch_.cores;
    now_ += overhead;
    overhead_ += overhead;
    launch_.began = launch_.since = now_;
    launch_.places.assign(launch_.cores, Place{now_});
    ++launches_;
    blocks_ += launch_.blocks;
    waves_ += (launch_.blocks + launch_.cores - 1) / launch_.cores;
    most_cores_ = std::max(most_cores_, launch_.cores);
    available_ = chip_.cores(instr.b);
    shared_tokens_.clear();
    l2_.begin_launch(static_cast<uint64_t>(chip_.copy.window));
}

void Timeline::end_launch() {
    for (auto &left : cores_)
        if (left) end_core(*left);
    for (uint32_t block = 0; block < launch_.ended.size(); ++block) {
        const Ended &ended = launch_.ended[block];
        launch_.places[ended.place].for_others += ended.loss.of(l2_.fetched_for_others(block, launch_.flags));
    }
    std::vector<Span> spans;
    for (const Place &place : launch_.places) {
        const Ticks span = std::max<Ticks>(0, place.free - launch_.since);
        spans.push_back({span, place.work, place.from_l2, place.for_others, place.shared, place.hbm});
    }
    const Ticks longest = launch_.since - launch_.began - launch_.saved + settle(std::move(spans));
    now_ = launch_.began + longest;
    if (trace_) trace_->add_launch(launches_, launch_.blocks, launch_.cores, launch_.began, now_);
    longest_ += longest;
    mean_ += std::min(longest, launch_.core_time / std::max(1u, launch_.cores));
    uint64_t filled = 0;
    for (const Place &place : launch_.places) filled += place.filled;
    l2_.end_launch(filled);
}

void Timeline::transfer(Core &at, Ticks time, Ticks end) const {
    at.traffic.add({time, time * ((end - launch_.since) / CYCLE) / CYCLE});
}

// The duration of a phase. Each core was timed with an equal share of HBM; as cores finish, the remaining ones share it,
// which shortens what they still transfer. No core takes less time than one of its pipes needs whatever the others do.
//
// Cores were timed one after another, so bytes charged to the core that was timed first were really fetched in part by
// each of their readers: the other readers' part is subtracted. These take it over while they read from L2, so all cores
// together need what they needed before, but for that time. Nor do they need less than HBM takes for all their bytes:
// cube cores and the vector cores beside them were each timed with all of it.
Ticks Timeline::settle(std::vector<Span> spans) const {
    Ticks longest = 0, shared = 0;
    for (Span &span : spans) {
        shared += span.shared;
        longest += std::max<Ticks>(0, span.time - span.from_l2) / static_cast<Ticks>(spans.size());
        span.time = std::max(std::min(span.work, span.time), span.time - span.for_others);
    }
    longest = std::max(longest, shared / static_cast<Ticks>(std::max(1u, launch_.cores)));
    std::stable_sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) { return a.time < b.time; });
    const double total = chip_.bytes_per_cycle(chip_.memory.hbm_gbs);
    const double core = chip_.bytes_per_cycle(chip_.memory.hbm_core_gbs);
    std::vector<int64_t> rates;  // by how many cores have finished
    for (size_t left = spans.size(); left > 0; --left)
        rates.push_back(rate(std::min(core, total / static_cast<double>(left))).scaled);
    const auto saved = [&](Ticks time) {  // what a core that does nothing but transfers until then would have gained
        Ticks sum = 0, before = 0;
        for (size_t done = 0; done < spans.size() && before < time; ++done) {
            const Ticks end = std::min(spans[done].time, time);
            sum += (end - before) * (rates[0] - rates[done]) / rates[0];
            before = end;
        }
        return sum;
    };
    for (const Span &span : spans) {
        const Ticks until = std::min(span.time, span.hbm.until());
        const Ticks bound = until ? std::min(span.hbm.time, until) * CYCLE / until : 0;  // the bandwidth-bound part
        longest = std::max({longest, std::min(span.work, span.time), span.time - saved(until) * bound / CYCLE});
    }
    return longest;
}

// A block runs on the core that is free first.
void Timeline::begin_core(uint32_t block) {
    if (launch_.places.empty()) {  // records without a launch, as in tests
        launch_.places.assign(1, Place{now_});
        launch_.cubes.assign(1, Way{});
    }
    auto &places = launch_.places;
    const bool first = block < places.size();
    const auto place = first ? places.begin() + block
                             : std::min_element(places.begin(), places.end(),
                                                [](const Place &a, const Place &b) { return a.free < b.free; });
    const Ticks dispatch = first ? 0 : ticks(chip_.launch.block_cycles);
    if (block >= cores_.size()) cores_.resize(block + 1u);
    if (cores_[block]) end_core(*cores_[block]);
    if (spare_.empty()) spare_.push_back(std::make_unique<Core>(chip_));
    cores_[block] = std::move(spare_.back());
    spare_.pop_back();
    cores_[block]->begin(block, static_cast<uint32_t>(place - places.begin()), place->free + dispatch);
    cores_[block]->filler.filled = place->filled;
    cores_[block]->filler.dirty = place->dirty;
    share_memory(*cores_[block]);
}

void Timeline::share_memory(Core &at) {
    const uint32_t beside = std::max(1u, launch_.cores);
    const double hbm = chip_.bytes_per_cycle(chip_.memory.hbm_gbs) / beside;
    const double l2 = chip_.bytes_per_cycle(chip_.memory.l2_gbs) / beside;
    const auto cubes = static_cast<double>(launch_.cubes.size());
    const double cube_hbm = chip_.bytes_per_cycle(chip_.memory.hbm_gbs) / cubes;
    const double cube_l2 = chip_.bytes_per_cycle(chip_.memory.l2_gbs) / cubes;
    at.filler.beside = beside;
    at.cube = &launch_.cubes[at.place * launch_.cubes.size() / launch_.places.size()];
    at.cube_hbm = rate(std::min(cube_hbm, chip_.bytes_per_cycle(chip_.memory.hbm_core_gbs)));
    at.cube_l2 = rate(std::min(cube_l2, chip_.bytes_per_cycle(chip_.memory.l1_core_gbs)));
    at.hbm = rate(std::min(hbm, chip_.bytes_per_cycle(chip_.memory.hbm_core_gbs)));
    at.port = rate(chip_.bytes_per_cycle(chip_.memory.hbm_core_gbs));
    at.share = rate(hbm);
    at.l2 = rate(std::min(l2, chip_.bytes_per_cycle(chip_.memory.l2_core_gbs)));
    at.write = rate(std::min(l2, chip_.bytes_per_cycle(chip_.memory.write_core_gbs)));
    at.fix = rate(std::min(l2, chip_.bytes_per_cycle(chip_.cube.fix_gbs)));
    at.shared = ticks(chip_.copy.shared * (beside - 1));
    at.contended = ticks(chip_.copy.contended * (beside - 1));
}

void Timeline::end_core(Core &at) {
    if (at.waiting) release_sync(at);
    const Ticks end = at.drained(), span = end - at.began;
    Place &place = launch_.places[at.place];
    place.free = std::max(place.free, end);
    place.hbm.add(at.traffic);
    place.from_l2 += at.from_l2;
    place.shared += at.shared_hbm;
    place.work += *std::max_element(at.work, at.work + ASC_PIPES);
    if (at.block >= launch_.ended.size()) launch_.ended.resize(at.block + 1u);
    launch_.ended[at.block] = {at.place, loss(at, end - at.since)};
    launch_.core_time += span;
    place.filled = at.filler.filled;
    place.dirty = at.filler.dirty;
    at.totals.core_time = span;
    totals_.add(at.totals);
    spare_.push_back(std::move(cores_[at.block]));
}

Timeline::Core &Timeline::core(uint32_t block) {
    if (block >= cores_.size() || !cores_[block]) begin_core(block);
    return *cores_[block];
}

// The time that a core loses in a phase for each byte that comes from HBM instead of L2.
Rate Timeline::loss(const Core &at, Ticks span) {
    const int64_t slower = std::max<int64_t>(0, at.hbm.scaled - at.l2.scaled);
    const Ticks loading = std::min(span, at.totals.busy[ASC_MTE2] - at.copied);
    return Rate{span ? slower * loading / span : 0};
}

void Timeline::sync_all(Core &at) {
    at.arrived = at.drained();
    if (launch_.meetings.size() <= at.met) launch_.meetings.resize(at.met + 1);
    Meeting &meeting = launch_.meetings[at.met];
    meeting.last = std::max(meeting.last, at.arrived);
    const Ticks span = at.arrived - at.since;
    const Ticks work = *std::max_element(at.work, at.work + ASC_PIPES);
    meeting.cores.push_back({at.block, {span, work, at.from_l2, 0, at.shared_hbm, at.traffic}, loss(at, span)});
    at.waiting = true;
}

// What a phase is shorter than its slowest core's clock says is subtracted from the launch; the clocks run on.
void Timeline::end_phase(const Meeting &meeting) {
    std::vector<Span> spans;
    for (const Arrival &core : meeting.cores) {
        spans.push_back(core.span);
        spans.back().for_others = core.loss.of(l2_.fetched_for_others(core.block, launch_.flags));
    }
    launch_.saved += meeting.last - launch_.since - settle(std::move(spans));
    launch_.since = meeting.last + sync_;
    launch_.flags = false;
    l2_.begin_phase();
}

// When a core resumes, all others have arrived, because the kernel process runs them one after another. Some may
// already be at the next SyncAll, so each SyncAll has its own time.
void Timeline::release_sync(Core &at) {
    const Meeting &meeting = launch_.meetings[at.met++];
    const Ticks go = meeting.last + sync_;
    if (launch_.since < go) end_phase(meeting);
    at.totals.wait[ASC_S][CAUSE_SYNC] += go - at.arrived;
    at.clock = at.since = go;
    at.copied = at.totals.busy[ASC_MTE2];
    at.traffic = Traffic{};
    at.from_l2 = at.shared_hbm = 0;
    std::fill(std::begin(at.work), std::end(at.work), 0);
    for (Pipe &pipe : at.pipe) pipe.free = pipe.done = std::max(pipe.done, go);
    at.waiting = false;
}

}  // namespace sim
