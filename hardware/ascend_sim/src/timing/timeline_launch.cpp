// Launches: overhead, placement of blocks, shared memory bandwidth, synchronisation of cores.
#include <algorithm>

#include "timeline.h"

namespace sim {

using namespace timing;

namespace {

// What a unit that does nothing but transfers until `time` would have gained as others end, with the rates that are left.
Ticks saved(const std::vector<Ticks> &ends, const std::vector<int64_t> &rates, Ticks time) {
    Ticks sum = 0, before = 0;
    for (size_t done = 0; done < ends.size() && before < time; ++done) {
        const Ticks end = std::min(ends[done], time);
        sum += (end - before) * (rates[0] - rates[done]) / rates[0];
        before = end;
    }
    return sum;
}

}  // namespace

void Timeline::begin_launch(const Instr &instr) {
    launch_ = Launch{};
    launch_.kind = instr.b;
    const uint32_t lanes = instr.b == ASC_MIX ? 2 : 1;  // vector cores of a block; they share its cube
    launch_.blocks = std::max(1u, instr.a) * lanes;
    launch_.cores = std::min(launch_.blocks, chip_.cores(instr.b));
    launch_.cubes.assign(std::max(1u, launch_.cores / lanes), Cube{});
    const double once = chip_.launch.base_us + (instr.b == ASC_AIV ? 0.0 : chip_.launch.cube_us);
    // One vector core beside a cube core starts no sooner than two: so the roofline needs no launches of this kind.
    const uint32_t started = instr.b == ASC_MIX_1_1 ? 2 * launch_.cores : launch_.cores;
    Ticks overhead = chip_.from_us(once) + chip_.from_us(chip_.launch.core_us) * started;
    // Of several launches each costs no less than SyncAll: all cores of the one before have ended.
    if (launches_) overhead = std::max(overhead, sync_);
    if (launches_ == 1) overhead += std::max<Ticks>(0, sync_ - overhead_);
    now_ += overhead;
    overhead_ += overhead;
    launch_.began = launch_.since = now_;
    launch_.places.assign(launch_.cores, Place{{now_, now_, now_}});
    ++launches_;
    blocks_ += launch_.blocks;
    waves_ += (launch_.blocks + launch_.cores - 1) / launch_.cores;
    most_cores_ = std::max(most_cores_, launch_.cores);
    available_ = chip_.cores(instr.b);
    shared_tokens_.clear();
    share_memory();
    const auto bytes = static_cast<uint64_t>(chip_.copy.window);
    l2_.begin_launch(now_, launch_.blocks, launch_.cores, launch_.rates.l2.of(bytes), bytes);
    open_ = true;
    phase_ = 0;
}

void Timeline::end_launch() {
    time_phase();
    if (!launch_.arrived.empty()) end_phase();
    while (!cores_.empty()) end_core(cores_.begin()->second);
    uint64_t filled = 0, dirty = 0;
    for (const Place &place : launch_.places) {
        filled += place.filled;
        dirty += place.dirty;
    }
    const Ticks longest = launch_.since - launch_.began - launch_.saved + settle(spans());
    now_ = launch_.began + longest;
    if (trace_) trace_->add_launch(launches_, launch_.blocks, launch_.cores, launch_.began, now_);
    longest_ += longest;
    mean_ += std::min(longest, launch_.core_time / std::max(1u, launch_.cores));
    l2_.end_launch(filled, dirty);
    units_.clear();
    taking_ = nullptr;
    open_ = false;
}

void Timeline::share_memory() {
    const auto of = [&](double gbs) { return chip_.bytes_per_cycle(gbs); };
    const double hbm = of(chip_.memory.hbm_gbs), l2 = of(chip_.memory.l2_gbs);
    const double port = of(chip_.memory.hbm_core_gbs);
    const uint32_t beside = launch_.cores;
    const auto cubes = static_cast<double>(launch_.cubes.size());
    Rates &rates = launch_.rates;
    rates.hbm = rate(std::min(hbm / beside, port));
    rates.port = rate(port);
    rates.share = rate(hbm / beside);
    rates.l2 = rate(std::min(l2 / beside, of(chip_.memory.l2_core_gbs)));
    rates.l2_share = rate(l2 / beside);
    rates.write = rate(std::min(l2 / beside, of(chip_.memory.write_core_gbs)));
    rates.fix = rate(std::min(l2 / beside, of(chip_.cube.fix_gbs)));
    rates.cube_share = rate(hbm / cubes);
    rates.cube_l2 = rate(std::min(l2 / cubes, of(chip_.memory.l1_core_gbs)));
    rates.shared = ticks(chip_.copy.shared);
    rates.contended = ticks(chip_.copy.contended);
    launch_.window = rates.hbm.of(static_cast<uint64_t>(chip_.copy.window));
}

// Times the steps that were kept. What a core has been told of by a flag is not fetched at the same time.
void Timeline::time_phase() {
    if (at_once_ || copied_ > MOST_COPIED) {
        time_at_once();
        at_once_ = false;
        return;
    }
    begin_phase();
    const State before = *this;
    copied_ += lines_.size() * sizeof(LineTime) + shared_tokens_.size() * COPIED_NODE;
    for (const auto &each : cores_) copied_ += sizeof(Core) + each.second.tokens.size() * sizeof(Moment);
    play_steps(false);
    const Ticks together = launch_.flags ? std::min(launch_.window, event_) : launch_.window;
    const bool again = l2_.share(together, at_work_) || trace_;
    if (again) {
        static_cast<State &>(*this) = before;
        play_steps(true);
    }
    for (int known = 0; known < MOST_KNOWN && (known ? ends_later() : shortened()); ++known) {
        const std::vector<Span> ends = ended(spans());
        if (again || known) l2_.repeat();
        static_cast<State &>(*this) = before;
        know_ends(ends);
        play_steps(false);
    }
    forget_steps();
}

// Times the steps that were kept in one pass; others of the phase may follow.
void Timeline::time_at_once() {
    if (!at_once_) {
        begin_phase();
        l2_.crowd();
    }
    at_once_ = true;
    play_steps(true);
    forget_steps();
}

void Timeline::play_steps(bool last) {
    timed_ = nullptr;
    tracing_ = last && trace_;
    for (size_t i = 0; i < steps_.size(); ++i) {
        if (i % 256 == 0) at_work_();
        play(steps_[i]);
    }
    tracing_ = false;
}

void Timeline::forget_steps() {
    steps_.clear();
    moves_.clear();
    products_.clear();
    names_.clear();
}

void Timeline::begin_phase() {
    if (!launch_.arrived.empty()) end_phase();
    launch_.flags = false;
    launch_.left = launch_.writes_left = launch_.fixes_left = launch_.cubes_left = Left{};
    l2_.begin_phase();
}

// What a phase is shorter than its slowest core's clock says is subtracted from the launch; the clocks run on.
void Timeline::end_phase() {
    launch_.saved += launch_.met - launch_.since - settle(spans());
    launch_.since = launch_.met + sync_;
    launch_.arrived.clear();
}

// What the cores did in the phase that has been timed.
std::vector<Span> Timeline::spans() const {
    if (!launch_.arrived.empty()) return launch_.arrived;
    std::vector<Span> spans;
    for (const Place &place : launch_.places) {
        spans.push_back(place.span);
        spans.back().took = place.free - Times{launch_.since, launch_.since, launch_.since};
        spans.back().took.time = std::max<Ticks>(0, spans.back().took.time);
    }
    return spans;
}

// HBM's time for a byte when so many of the cores have ended, by how many.
std::vector<int64_t> Timeline::rates_left(size_t cores) const {
    const double total = chip_.bytes_per_cycle(chip_.memory.hbm_gbs);
    const double core = chip_.bytes_per_cycle(chip_.memory.hbm_core_gbs);
    std::vector<int64_t> rates;
    for (size_t left = cores; left > 0; --left)
        rates.push_back(rate(std::min(core, total / static_cast<double>(left))).scaled);
    return rates;
}

// When each core ends in the phase. Each was timed with an equal share of HBM; as cores finish, the remaining ones share
// it, which shortens what they still transfer. What products fetch comes sooner only as whole cubes end. No core takes
// less time than one of its pipes needs whatever the others do, and none takes less than by its second clock: copies
// beside other work do not shorten that work, nor the time for which a core waits until the cube has done its neighbour's
// products. Copies come sooner only by what HBM made the core wait for them, which its third clock tells.
std::vector<Span> Timeline::ended(std::vector<Span> spans) const {
    std::vector<Ticks> cores, cubes(launch_.cubes.size());
    for (const Span &span : spans) {
        cores.push_back(span.took.time);
        cubes[span.cube] = std::max(cubes[span.cube], span.took.time);
    }
    std::sort(cores.begin(), cores.end());
    std::sort(cubes.begin(), cubes.end());
    const std::vector<int64_t> core_rates = rates_left(cores.size()), cube_rates = rates_left(cubes.size());
    for (Span &span : spans) {
        const Ticks time = span.took.time, needed = std::min(std::max(span.took.least, span.work), time);
        const auto gained = [&](const Traffic &traffic, const auto &ends, const auto &rates) {
            const Ticks until = std::min(time, traffic.until());  // of which a part is bound by bandwidth
            return until ? saved(ends, rates, until) * (std::min(traffic.time, until) * CYCLE / until) / CYCLE : 0;
        };
        const Ticks cube = time - gained(span.fetches, cubes, cube_rates);
        span.cube_end = std::max(needed, cube);
        const Ticks waited = std::max<Ticks>(0, time - span.took.beside);
        span.end = std::max(needed, cube - std::min(waited, gained(span.traffic, cores, core_rates)));
    }
    return spans;
}

// The duration of a phase. All cores together need no less than HBM and L2 take for all their bytes: cube cores and the
// vector cores beside them were each timed with all of both.
Ticks Timeline::settle(const std::vector<Span> &spans) const {
    Ticks longest = 0, hbm = 0, l2 = 0;
    for (const Span &span : spans) {
        hbm += span.hbm;
        l2 += span.l2;
        longest += std::max<Ticks>(0, span.took.time - span.products) / static_cast<Ticks>(spans.size());
    }
    longest = std::max(longest, std::max(hbm, l2) / static_cast<Ticks>(launch_.cores));
    for (const Span &span : ended(spans)) longest = std::max(longest, span.end);
    return longest;
}

// Whether cores that end sooner than others shorten the phase by more than a thousandth.
bool Timeline::shortened() const {
    Ticks slowest = 0;
    for (const Span &span : spans()) slowest = std::max(slowest, span.took.time);
    return (slowest - settle(spans())) * 1000 > slowest;
}

// Whether cores end later than was known by more than a thousandth: they were timed as if others left them more.
bool Timeline::ends_later() const {
    std::vector<Ticks> ends;
    for (const Span &span : ended(spans())) ends.push_back(span.end);
    std::sort(ends.begin(), ends.end());
    const std::vector<Ticks> &known = launch_.left.ends;
    return !std::equal(ends.begin(), ends.end(), known.begin(), known.end(),
                       [](Ticks end, Ticks before) { return (end - before) * 1000 <= before; });
}

Left Timeline::left(std::vector<Ticks> ends, Rate least) const {
    const std::vector<int64_t> rates = rates_left(ends.size());
    const int64_t beyond = std::max<int64_t>(1, rates[0] - least.scaled);
    Left left;
    std::sort(ends.begin(), ends.end());
    left.ends = std::move(ends);
    for (const int64_t each : rates) left.parts.push_back(std::max<int64_t>(0, each - least.scaled) * CYCLE / beyond);
    return left;
}

// A cube has its share of HBM until the last of the cores that it serves ends.
void Timeline::know_ends(const std::vector<Span> &ended) {
    std::vector<Ticks> cores, cubes(launch_.cubes.size());
    for (const Span &span : ended) {
        cores.push_back(span.end);
        cubes[span.cube] = std::max(cubes[span.cube], span.cube_end);
    }
    launch_.writes_left = left(cores, Rate{launch_.rates.write.scaled * CYCLE / hbm_write_});
    launch_.fixes_left = left(cores, Rate{launch_.rates.fix.scaled * CYCLE / hbm_write_});
    launch_.left = left(std::move(cores), launch_.rates.l2);
    launch_.cubes_left = left(std::move(cubes), launch_.rates.cube_l2);
}

// A block runs on the core that is free first.
void Timeline::begin_core(uint32_t block) {
    if (const auto left = cores_.find(block); left != cores_.end()) end_core(left->second);
    auto &places = launch_.places;
    const bool first = block < places.size();
    const auto place = first ? places.begin() + block
                             : std::min_element(places.begin(), places.end(), [](const Place &a, const Place &b) {
                                   return a.free.time < b.free.time;
                               });
    const Times begin = place->free + (first ? 0 : ticks(chip_.launch.block_cycles));
    Core &at = cores_[block];
    at.block = block;
    at.place = static_cast<uint32_t>(place - places.begin());
    at.cube = static_cast<uint32_t>(at.place * launch_.cubes.size() / places.size());
    at.began = begin.time;
    at.since = at.clock = begin;
    for (Pipe &pipe : at.pipe) {
        pipe.free = pipe.done = begin;
        pipe.starts.assign(static_cast<size_t>(chip_.scalar.queue_depth), {});
    }
    at.filler = Filler{block, launch_.cores, place->filled, place->dirty, begin.time};
    timed_ = &at;
}

void Timeline::end_core(Core &at) {
    if (at.waiting) release_sync(at);
    const Times end = at.drained();
    end_span(at, end);
    Place &place = launch_.places[at.place];
    place.free = latest(place.free, end);
    place.span.add(at.span);
    place.filled = at.filler.filled;
    place.dirty = at.filler.dirty;
    launch_.core_time += end.time - at.began;
    timed_ = nullptr;
    cores_.erase(at.block);
}

timing::Core &Timeline::core(uint32_t block) {
    if (timed_ && timed_->block == block) return *timed_;
    const auto found = cores_.find(block);
    if (found == cores_.end()) begin_core(block);
    else timed_ = &found->second;
    return *timed_;
}

void Timeline::end_span(Core &at, Times end) const {
    at.span.cube = at.cube;
    at.span.work = *std::max_element(at.work, at.work + ASC_PIPES);
    at.span.took = end - at.since;
}

void Timeline::sync_all(Core &at) {
    at.arrived = at.drained();
    end_span(at, at.arrived);
    launch_.met = std::max(launch_.met, at.arrived.time);
    launch_.arrived.push_back(at.span);
    at.waiting = true;
}

// The phase before has ended.
void Timeline::release_sync(Core &at) {
    const Times go{launch_.since, launch_.since, launch_.since};
    totals_.wait[ASC_S][CAUSE_SYNC] += go.time - at.arrived.time;
    at.clock = at.since = go;
    at.span = Span{};
    std::fill(std::begin(at.work), std::end(at.work), 0);
    for (Pipe &pipe : at.pipe) pipe.free = pipe.done = latest(pipe.done, go);
    at.waiting = false;
}

}  // namespace sim
