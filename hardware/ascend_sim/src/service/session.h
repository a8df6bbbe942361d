// One run: starts a kernel process, executes and times what it sends, and says how it went.
#pragma once
#include <chrono>
#include <string>

#include "executor/executor.h"
#include "synthetic_reads.h"
#include "request.h"
#include "protocol/ring.h"
#include "zygote.h"

namespace sim {

class Session {
public:
    Session(const Request &request, Ring &ring, Zygote &zygote)
        : request_(request), ring_(ring), zygote_(zygote), synthetic_reads_(request.seed) {}
    // The reply, as JSON. `descriptor` holds the tensors. Throws if the device itself fails.
    std::string run(int descriptor);

private:
    using Clock = std::chrono::steady_clock;
    enum class End { Returned, Died, Timeout, Silent, Budget };

    void prepare_ring(const Chip &chip);
    void fill_call(const Chip &chip);
    End follow(Executor &executor);
    // Executes what is in the ring; true if the run has come to its end.
    bool drain(Executor &executor, End *end);
    void execute(Executor &executor, const Record &record);
    bool await_records();
    // True if the kernel process has computed for long without a record: a loop in which nothing is counted.
    bool silent();
    DeviceFault death() const;
    DeviceFault strayed() const;
    std::string place() const;  // of the last call, in words
    std::string covered_blocks() const;

    const Request &request_;
    Ring &ring_;
    Zygote &zygote_;
    SyntheticReads synthetic_reads_;
    Clock::time_point deadline_;
    uint64_t tail_ = 0, spent_ = 0;
    uint32_t answers_ = 0;
    double heard_ = 0;  // processor time of the kernel process when it last sent something
    int32_t line_ = 0;  // of the last record: where a crash is near
};

}  // namespace sim
