#include "executor.h"

#include "protocol/json.h"

namespace sim {

namespace {
constexpr uint32_t max_blocks = 65535;
}

Executor::Executor(const ExecutorOptions &options, Sink &sink)
    : options_(options), sink_(sink), global_(options.tensors, options.compute, options.poison, order_, diagnostics_) {}

Executor::~Executor() = default;

// ---- position in the program ---------------------------------------------------------------------------------------

Core &Executor::running(int32_t line) {
    at(line);
    if (!core_) diagnostics_.fail(Rule::Protocol, "an instruction outside a core");
    return *core_;
}

void Executor::work(uint64_t elements) {
    worked_ += elements;
    if (worked_ > options_.work_limit) {
        diagnostics_.fail(Rule::WorkLimit, text("this run computes more than %llu elements",
                                                static_cast<unsigned long long>(options_.work_limit)));
    }
}

Instr Executor::instr(Kind kind, uint32_t pipe) const {
    Instr record = {};
    record.kind = kind;
    record.pipe = static_cast<uint8_t>(pipe);
    record.core = core_ ? core_->id : 0;
    record.line = diagnostics_.line;
    return record;
}

void Executor::overhead(Call call) {
    Instr record = instr(Kind::Overhead, ASC_S);
    record.op = static_cast<uint16_t>(call);
    emit(record);
}

void Executor::signal(uint32_t pipe, uint32_t token) {
    Instr record = instr(Kind::Signal, pipe);
    record.token = token;
    emit(record);
}

void Executor::wait(uint32_t pipe, uint32_t token) {
    Instr record = instr(Kind::Wait, pipe);
    record.token = token;
    emit(record);
}

void Executor::plain_code(PlainCode code) {
    code_before_ = code;
    if (!core_ || code.cycles == 0) return;
    Instr record = instr(Kind::PlainCode, ASC_S);
    record.a = code.cycles;
    emit(record);
}

// ---- launches and cores --------------------------------------------------------------------------------------------

void Executor::launch_begin(uint32_t blocks, uint32_t core_kind, int32_t line) {
    at(line);
    if (launched_ || returned_) diagnostics_.fail(Rule::Protocol, "a launch inside a launch");
    if (blocks == 0 || blocks > max_blocks)
        diagnostics_.fail(Rule::Launch, text("the kernel is launched on %u blocks", blocks));
    if (core_kind > ASC_MIX_1_1) diagnostics_.fail(Rule::Protocol, "a launch on an unknown kind of core");
    launched_ = true;
    launch_ = Launch();
    launch_.blocks = blocks;
    launch_.kind = core_kind;
    launch_.instances = core_kind == ASC_MIX ? 2 * blocks : blocks;
    launch_.begun.assign(launch_.instances, 0);
    cores_.clear();
    cores_.resize(launch_.instances);
    ++launches_;
    order_.meet();
    Instr record = instr(Kind::LaunchBegin, ASC_S);
    record.a = blocks;
    record.b = core_kind;
    emit(record);
}

std::unique_ptr<Core> Executor::take_core(uint32_t instance) {
    std::unique_ptr<Core> core;
    if (pool_.empty()) {
        core = std::make_unique<Core>(options_.poison);
    } else {
        core = std::move(pool_.back());
        pool_.pop_back();
    }
    core->reset(instance);
    return core;
}

// A core that is overtaken by others keeps its state until it resumes.
void Executor::core_begin(uint32_t block, int32_t line) {
    at(line);
    if (!launched_ || block >= launch_.instances || launch_.begun[block])
        diagnostics_.fail(Rule::Protocol, "a core begins out of turn");
    const uint32_t physical = physical_cores();
    if (++launch_.live > physical) {
        diagnostics_.fail(Rule::SyncDeadlock,
                          text("%u blocks wait for each other, but only %u run at once", launch_.live - 1, physical));
    }
    launch_.begun[block] = 1;
    cores_[block] = take_core(block);
    core_ = cores_[block].get();
    diagnostics_.core = static_cast<int32_t>(block);
    Instr record = instr(Kind::CoreBegin, ASC_S);
    record.a = block;
    emit(record);
}

void Executor::core_resume(uint32_t block, int32_t line) {
    at(line);
    if (!launched_ || block >= launch_.instances || !cores_[block] || cores_[block]->waiting) {
        diagnostics_.fail(Rule::Protocol, "a core resumes out of turn");
    }
    core_ = cores_[block].get();
    diagnostics_.core = static_cast<int32_t>(block);
    emit(instr(Kind::CoreResume, ASC_S));
}

void Executor::core_end(int32_t line) {
    Core &core = running(line);
    check_leaks(core);
    if (launch_.instances > physical_cores()) write_back(core);  // the blocks of a launch do not all run at once
    emit(instr(Kind::CoreEnd, ASC_S));
    pool_.push_back(std::move(cores_[core.id]));
    core_ = nullptr;
    diagnostics_.core = -1;
    ++launch_.ended;
    --launch_.live;
    if (launch_.waiting) {
        diagnostics_.fail(Rule::SyncDeadlock,
                          text("core %u ended while %u blocks wait for it in SyncAll", core.id, launch_.waiting));
    }
}

void Executor::check_leaks(Core &core) {
    for (uint32_t id = 0; id < core.queues.size(); ++id) {
        for (const QueueBuffer &buffer : core.queues[id].buffers) {
            if (buffer.state == BufferState::Free) continue;
            const char *how = buffer.state == BufferState::Enqueued    ? "enqueued but never dequeued"
                              : buffer.state == BufferState::Allocated ? "allocated but never enqueued or freed"
                                                                       : "dequeued but never freed";
            diagnostics_.fail(Rule::QueueLeak, text("the kernel ends with a tensor of %s %s (line %d)",
                                                    core.queues[id].name(id).c_str(), how, buffer.line));
        }
    }
    for (uint32_t source = 0; source < ASC_PIPES; ++source) {
        for (uint32_t destination = 0; destination < ASC_PIPES; ++destination) {
            for (int id = 0; id < event_ids; ++id) {
                const Flag &flag = core.flags[source][destination][id];
                if (!flag.set) continue;
                diagnostics_.fail(Rule::FlagLeak,
                                  text("the kernel ends with SetFlag<HardEvent::%s_%s>(%d) of line %d not waited for",
                                       name_of_pipe(source), name_of_pipe(destination), id, flag.line));
            }
        }
    }
}

void Executor::launch_end(int32_t line) {
    at(line);
    if (!launched_) diagnostics_.fail(Rule::Protocol, "a launch ends out of turn");
    if (launch_.ended != launch_.instances) {
        if (launch_.waiting) stuck(launch_.waiting, line);
        diagnostics_.fail(Rule::Protocol, "a launch ends before its blocks");
    }
    launched_ = false;
    order_.meet();
    dirty_lines_.clear();
    emit(instr(Kind::LaunchEnd, ASC_S));
}

void Executor::returned(int32_t code, int32_t line) {
    at(line);
    if (launched_ || returned_) diagnostics_.fail(Rule::Protocol, "kernel_launch returns out of turn");
    if (code == 0 && dropped_output_ && !global_.all_written()) diagnostics_.fail_if_suspected();
    returned_ = true;
    code_ = code;
}

void Executor::stuck(uint32_t waiting, int32_t line) {
    at(line);
    diagnostics_.fail(Rule::SyncDeadlock, text("%u blocks wait for others that have finished or do not run", waiting));
}

// ---- report --------------------------------------------------------------------------------------------------------

std::string Executor::report_json() const {
    Object mix;
    for (const auto &[name, times] : instruction_counts_.sorted()) mix.set(name, times);
    Array warnings;
    for (const Diagnostics::Warning &warning : diagnostics_.warnings()) {
        const std::string more =
            warning.times > 1 ? text(" (%llu times)", static_cast<unsigned long long>(warning.times)) : std::string();
        warnings.raw(quoted(text("%s line %d: ", text_of(warning.rule).id, warning.line) + warning.message + more));
    }
    return Object()
        .raw("mix", mix.done())
        .raw("read", global_.read_json())
        .raw("written", global_.written_json())
        .raw("warnings", warnings.done())
        .set("printed", printed_)
        .set("data_dependent", data_dependent_)
        .set("launches", launches_)
        .done();
}

}  // namespace sim
