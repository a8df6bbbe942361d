// One run: starts a kernel process, executes and times its records, and reports the result.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "executor/executor.h"
#include "synthetic_reads.h"
#include "request.h"
#include "protocol/ring.h"
#include "timing/caches.h"
#include "zygote.h"

namespace sim {

class Session {
public:
    // `at_work` is called every few seconds while the kernel sends records and while they are timed.
    // `l2` is what the run before left; a run that does not continue it makes another.
    Session(const Request &request, Ring &ring, Zygote &zygote, std::unique_ptr<L2> &l2, std::function<void()> at_work)
        : request_(request), ring_(ring), zygote_(zygote), l2_(l2), at_work_(std::move(at_work)),
          synthetic_reads_(request.seed) {}
    // Returns the reply as JSON. `descriptor` holds the tensors. Throws if the device itself fails.
    std::string run(int descriptor);

private:
    using Clock = std::chrono::steady_clock;
    enum class End { Returned, Died, Timeout, Silent, Budget, HostBudget };

    void prepare_ring(const Chip &chip);
    void prepare_cache(const Chip &chip);
    void price_code(const Chip &chip);
    void fill_call(const Chip &chip);
    End follow(Executor &executor);
    // Executes the records in the ring; true if the run has ended.
    bool drain(Executor &executor, End *end);
    void execute(Executor &executor, const Record &record);
    void read_words(uint64_t *to, size_t count);
    uint64_t spent_in_loops(const Executor &executor) const;
    bool await_records();
    void give_sign();
    // True if the kernel process computed for long without sending a record: a loop in which nothing is counted.
    bool silent();
    DeviceFault death() const;
    DeviceFault strayed() const;
    DeviceFault off_variables() const;
    std::string place() const;  // position of the last call, as text
    std::string covered_blocks() const;

    const Request &request_;
    Ring &ring_;
    Zygote &zygote_;
    std::unique_ptr<L2> &l2_;
    std::function<void()> at_work_;
    Clock::time_point said_ = Clock::now();  // when `at_work_` was last called
    SyntheticReads synthetic_reads_;
    Clock::time_point deadline_;
    uint64_t tail_ = 0, words_tail_ = 0, spent_ = 0, spent_by_host_ = 0;
    uint32_t answers_ = 0;
    // Processor time of the kernel process at the last look at it, and since it last sent a record.
    double looked_ = 0, silence_ = 0;
    int32_t line_ = 0;  // line of the last record, for messages about crashes
};

}  // namespace sim
