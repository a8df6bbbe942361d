// Drives the timing pass alone: reads a chip profile and instruction records as text, prints the report.
//
//   chip KEY VALUE            figures first
//   KIND field=value ...      one record a line
//   mark / repeat N           the records since the last `mark` or `repeat`, N times in all
//   access field=value ...    one access of the next loop
//   loop COUNT CORE VARIED    so many scalar accesses of a core, in the period that the accesses before it are
// With a path as argument a Chrome trace is written there; with `--rate`, records a second instead of the report; with
// `--plain`, loops are taken access by access.
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>

#include "timing/timeline.h"

using namespace sim;

namespace {

const std::map<std::string, Kind> KINDS = {
    {"launch_begin", Kind::LaunchBegin}, {"launch_end", Kind::LaunchEnd}, {"core_begin", Kind::CoreBegin},
    {"core_resume", Kind::CoreResume}, {"core_end", Kind::CoreEnd}, {"vector", Kind::Vector},
    {"copy_in", Kind::CopyIn}, {"copy_out", Kind::CopyOut}, {"plain_code", Kind::PlainCode},
    {"scalar_local", Kind::ScalarLocal}, {"scalar_global", Kind::ScalarGlobal}, {"cache_clean", Kind::CacheClean}, {"overhead", Kind::Overhead},
    {"signal", Kind::Signal}, {"wait", Kind::Wait}, {"barrier", Kind::Barrier}, {"sync_all", Kind::SyncAll},
    {"cube", Kind::Cube}, {"load", Kind::Load}, {"matmul", Kind::Matmul}};

using Setter = void (*)(Instr &, uint64_t);
#define FIELD(name, member) {name, [](Instr &i, uint64_t value) { i.member = static_cast<decltype(i.member)>(value); }}
const std::map<std::string, Setter> FIELDS = {
    FIELD("core", core), FIELD("line", line), FIELD("pipe", pipe), FIELD("family", family), FIELD("op", op),
    FIELD("dtype", dtype), FIELD("space", space), FIELD("operands", operands), FIELD("tail", tail),
    FIELD("atomic", atomic), FIELD("bypass", bypass), FIELD("repeats", repeats), FIELD("elements", elements),
    FIELD("token", token), FIELD("a", a), FIELD("b", b), FIELD("c", c), FIELD("gm", gm), FIELD("gap", gm_gap),
    FIELD("bursts", bursts), FIELD("bytes", burst_bytes), FIELD("dst", operand[0].addr), FIELD("src0", operand[1].addr),
    FIELD("src1", operand[2].addr), FIELD("dst_block", operand[0].block_stride),
    FIELD("src0_block", operand[1].block_stride), FIELD("src1_block", operand[2].block_stride),
    FIELD("src1_repeat", operand[2].repeat_stride), FIELD("m", matmul.m), FIELD("n", matmul.n), FIELD("k", matmul.k),
    FIELD("base_m", matmul.base_m), FIELD("base_n", matmul.base_n), FIELD("base_k", matmul.base_k),
    FIELD("depth_a", matmul.depth_a), FIELD("depth_b", matmul.depth_b), FIELD("left", matrix[0].begin),
    FIELD("left_bytes", matrix[0].bytes), FIELD("lefts", matrix[0].count), FIELD("out", matrix[2].begin),
    FIELD("out_bytes", matrix[2].bytes), FIELD("outs", matrix[2].count), FIELD("bias", matrix[3].begin),
    FIELD("bias_bytes", matrix[3].bytes), FIELD("biases", matrix[3].count)};

Instr parse(std::istringstream &words, Kind kind) {
    Instr instr{};
    instr.kind = kind;
    for (Operand &operand : instr.operand) operand = {0, 1, 8};
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        FIELDS.at(word.substr(0, equals))(instr, std::stoull(word.substr(equals + 1), nullptr, 0));
    }
    return instr;
}

// A number for an access, between 0 and 6.
uint32_t varying(uint32_t access) { return (access * 2654435761u >> 16) % 7; }

struct Loop {
    ScalarLoop loop;
    std::vector<PlainCode> varied;  // code, if it varies
};

void add_access(Loop &loop, std::istringstream &words) {
    ScalarLoop::Slot slot{};
    int global = 0, write = 0, dtype = 0;
    words >> slot.where >> slot.step >> slot.line >> slot.code.cycles >> global >> write >> dtype;
    slot.global = global != 0;
    slot.write = write != 0;
    slot.dtype = static_cast<uint8_t>(dtype);
    loop.loop.slots[loop.loop.period++] = slot;
}

void finish(Loop &loop, std::istringstream &words) {
    uint32_t varied = 0;
    words >> loop.loop.count >> loop.loop.core >> varied;
    for (uint32_t i = 0; varied && i < loop.loop.count; ++i) loop.varied.push_back({0, varying(i)});
}

struct Script {
    Chip::Pairs chip;
    std::vector<Instr> records;
    std::map<size_t, Loop> loops;  // by the number of records before them

    explicit Script(std::istream &in) {
        size_t begin = 0;
        Loop loop{};
        for (std::string line; std::getline(in, line);) {
            std::istringstream words(line);
            std::string word, key, value;
            if (!(words >> word)) continue;
            if (word == "chip") {
                words >> key >> value;
                chip.emplace_back(key, value);
            } else if (word == "repeat") {
                uint64_t times = 0;
                words >> times;
                const std::vector<Instr> part(records.begin() + begin, records.end());
                for (uint64_t i = 1; i < times; ++i) records.insert(records.end(), part.begin(), part.end());
                begin = records.size();
            } else if (word == "access") {
                add_access(loop, words);
            } else if (word == "loop") {
                finish(loop, words);
                loops[records.size()] = loop;
                loop = Loop{};
            } else if (word == "mark") {
                begin = records.size();
            } else {
                records.push_back(parse(words, KINDS.at(word)));
            }
        }
    }
};

// Takes loops access by access.
struct Plain : Sink {
    explicit Plain(Timeline &to) : timeline(to) {}
    void take(const Instr &instr) override { timeline.take(instr); }
    Timeline &timeline;
};

void take_loop_at(size_t record, const Script &script, Sink &sink) {
    const auto found = script.loops.find(record);
    if (found == script.loops.end()) return;
    ScalarLoop loop = found->second.loop;
    if (!found->second.varied.empty()) loop.varied = found->second.varied.data();
    sink.take_loop(loop);
}

}  // namespace

int main(int count, char **arguments) try {
    const Script script(std::cin);
    const Chip chip(script.chip);
    L2 l2(chip);
    Timeline timeline(chip, l2);
    const bool rate = count > 1 && !std::strcmp(arguments[1], "--rate");
    const bool plain = count > 1 && !std::strcmp(arguments[1], "--plain");
    Plain one_by_one(timeline);
    Sink &sink = plain ? static_cast<Sink &>(one_by_one) : timeline;
    FILE *trace = count > 1 && !rate && !plain ? std::fopen(arguments[1], "w") : nullptr;
    if (trace) timeline.trace_to(trace);
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < script.records.size(); ++i) {
        take_loop_at(i, script, sink);
        sink.take(script.records[i]);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (trace) {
        timeline.finish_trace();
        std::fclose(trace);
    }
    if (rate) std::printf("%.0f\n", static_cast<double>(script.records.size()) / seconds.count());
    else std::printf("%s\n", timeline.report_json().c_str());
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
