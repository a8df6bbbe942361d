// The sinks of instruction records in a run: the timing pass and, on request, a trace and a raw log.
#pragma once
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "timing/timeline.h"

namespace sim {

class Outputs {
public:
    Outputs(Timeline &timeline, const std::string &trace, const std::string &log)
        : timeline_(timeline), trace_(open(trace)), log_(open(log)), tee_{timeline, log_.get()} {
        if (trace_) timeline_.trace_to(trace_.get());
    }
    Sink &sink() { return log_ ? static_cast<Sink &>(tee_) : timeline_; }
    void finish() {
        if (trace_) timeline_.finish_trace();
    }

private:
    struct Closer {
        void operator()(FILE *file) const { std::fclose(file); }
    };
    using File = std::unique_ptr<FILE, Closer>;

    struct Tee : Sink {
        Tee(Timeline &first, FILE *second) : timeline(first), log(second) {}
        void take(const Instr &instr) override {
            std::fwrite(&instr, sizeof instr, 1, log);
            timeline.take(instr);
        }
        Timeline &timeline;
        FILE *log;
    };

    static File open(const std::string &path) {
        if (path.empty()) return nullptr;
        File file(std::fopen(path.c_str(), "wb"));
        if (!file) throw std::runtime_error("cannot write " + path);
        return file;
    }

    Timeline &timeline_;
    File trace_, log_;
    Tee tee_;
};

}  // namespace sim
