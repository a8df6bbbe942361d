// The report of the timing pass: times in microseconds, averaged over the active cores; bytes and counts are totals.
#include <algorithm>
#include <cstdio>

#include "protocol/json.h"
#include "timeline.h"

namespace sim {

using namespace timing;

namespace {

const char *cause_name(int cause) { return cause == CAUSE_SYNC ? "sync" : PIPE_NAMES[cause]; }

std::string bytes_json(const Totals &totals) {
    return Object()
        .set("hbm_read", totals.hbm_read)
        .set("hbm_write", totals.hbm_write)
        .set("l2_read", totals.l2_read)
        .set("l2_write", totals.l2_write)
        .set("ub", totals.ub)
        .done();
}

}  // namespace

std::string Timeline::report_json() const {
    const double cores = std::max(1u, most_cores_);
    auto mean = [&](Ticks time) { return chip_.microseconds(time) / cores; };
    Object pipes, utilisation, waits, counts;
    const double latency = latency_us();
    for (int pipe = 0; pipe < ASC_PIPES; ++pipe) {
        if (totals_.busy[pipe] || totals_.instructions[pipe]) {
            pipes.set(PIPE_NAMES[pipe], mean(totals_.busy[pipe]));
            utilisation.set(PIPE_NAMES[pipe], latency > 0 ? mean(totals_.busy[pipe]) / latency : 0.0);
            counts.set(PIPE_NAMES[pipe], totals_.instructions[pipe]);
        }
        for (int cause = 0; cause < CAUSES; ++cause)
            if (totals_.wait[pipe][cause])
                waits.set(std::string(PIPE_NAMES[pipe]) + "<-" + cause_name(cause), mean(totals_.wait[pipe][cause]));
    }
    counts.set("launches", launches_)
        .set("waves", waves_)
        .set("cores", most_cores_)
        .set("available_cores", available_)
        .set("blocks", blocks_);
    counts.set("records", records_).set("bursts_in", totals_.bursts_in).set("bursts_out", totals_.bursts_out);
    counts.set("misaligned", totals_.misaligned).set("scalar_accesses", totals_.scalar_accesses);
    counts.set("cache_misses", totals_.cache_misses).set("repeats", totals_.repeats);
    return Object()
        .set("chip", chip_.name)
        .set("latency_us", latency)
        .set("launch_us", chip_.microseconds(overhead_))
        .set("longest_us", chip_.microseconds(longest_))
        .set("mean_us", chip_.microseconds(mean_))
        .set("conflict_us", mean(totals_.conflicts))
        .set("contention_us", mean(totals_.contention))
        .raw("pipes", pipes.done())
        .raw("utilisation", utilisation.done())
        .raw("bytes", bytes_json(totals_))
        .raw("waits", waits.done())
        .raw("counts", counts.done())
        .raw("lines", lines_json())
        .done();
}

// The lines that kept a pipe busiest, at most eight.
std::string Timeline::lines_json() const {
    struct Entry {
        size_t line;
        int pipe;
        Ticks busy;
    };
    std::vector<Entry> entries;
    for (size_t line = 0; line < lines_.size(); ++line)
        for (int pipe = 0; pipe < ASC_PIPES; ++pipe)
            if (lines_[line].busy[pipe]) entries.push_back({line, pipe, lines_[line].busy[pipe]});
    std::stable_sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.busy > b.busy; });
    if (entries.size() > 8) entries.resize(8);
    Array lines;
    for (const Entry &entry : entries)
        lines.raw(Object()
                      .set("line", static_cast<uint64_t>(entry.line))
                      .set("pipe", PIPE_NAMES[entry.pipe])
                      .set("us", chip_.microseconds(entry.busy) / std::max(1u, most_cores_))
                      .done());
    return lines.done();
}

}  // namespace sim
