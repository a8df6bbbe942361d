// Drives the timing pass alone: reads a chip profile and instruction records as text, prints the report.
//
//   chip KEY VALUE            figures first
//   KIND field=value ...      one record a line
//   mark / repeat N           the records since the last `mark` or `repeat`, N times in all
// With a path as argument a Chrome trace is written there; with `--rate`, records a second instead of the report.
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>

#include "timeline.h"

using namespace sim;

namespace {

const std::map<std::string, Kind> KINDS = {
    {"launch_begin", Kind::LaunchBegin}, {"launch_end", Kind::LaunchEnd}, {"core_begin", Kind::CoreBegin},
    {"core_resume", Kind::CoreResume}, {"core_end", Kind::CoreEnd}, {"vector", Kind::Vector},
    {"copy_in", Kind::CopyIn}, {"copy_out", Kind::CopyOut}, {"scalar_blocks", Kind::ScalarBlocks},
    {"scalar_local", Kind::ScalarLocal}, {"scalar_global", Kind::ScalarGlobal}, {"overhead", Kind::Overhead},
    {"signal", Kind::Signal}, {"wait", Kind::Wait}, {"barrier", Kind::Barrier}, {"sync_all", Kind::SyncAll},
    {"cube", Kind::Cube}, {"load", Kind::Load}, {"matmul", Kind::Matmul}};

void set_field(Instr &instr, const std::string &name, uint64_t value) {
    const auto small = static_cast<uint32_t>(value);
    const std::map<std::string, uint32_t *> words = {
        {"core", &instr.core}, {"repeats", &instr.repeats}, {"elements", &instr.elements}, {"token", &instr.token},
        {"a", &instr.a}, {"b", &instr.b}, {"c", &instr.c}, {"bursts", &instr.bursts}, {"bytes", &instr.burst_bytes},
        {"dst", &instr.operand[0].addr}, {"src0", &instr.operand[1].addr}, {"src1", &instr.operand[2].addr},
        {"m", &instr.matmul.m}, {"n", &instr.matmul.n}, {"k", &instr.matmul.k}, {"base_m", &instr.matmul.base_m},
        {"base_n", &instr.matmul.base_n}, {"base_k", &instr.matmul.base_k}, {"depth_a", &instr.matmul.depth_a},
        {"depth_b", &instr.matmul.depth_b}};
    if (auto found = words.find(name); found != words.end()) *found->second = small;
    else if (name == "line") instr.line = static_cast<int32_t>(value);
    else if (name == "gm") instr.gm = value;
    else if (name == "gap") instr.gm_gap = value;
    else if (name == "pipe") instr.pipe = static_cast<uint8_t>(value);
    else if (name == "family") instr.family = static_cast<Family>(value);
    else if (name == "op") instr.op = static_cast<uint16_t>(value);
    else if (name == "dtype") instr.dtype = static_cast<uint8_t>(value);
    else if (name == "space") instr.space = static_cast<uint8_t>(value);
    else if (name == "operands") instr.operands = static_cast<uint8_t>(value);
    else if (name == "tail") instr.tail = static_cast<uint8_t>(value);
    else if (name == "atomic") instr.atomic = static_cast<uint8_t>(value);
    else if (name == "bypass") instr.bypass = static_cast<uint8_t>(value);
    else throw std::runtime_error("unknown field " + name);
}

Instr parse(std::istringstream &words, Kind kind) {
    Instr instr{};
    instr.kind = kind;
    for (Operand &operand : instr.operand) operand = {0, 1, 8};
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        set_field(instr, word.substr(0, equals), std::stoull(word.substr(equals + 1), nullptr, 0));
    }
    return instr;
}

struct Script {
    Chip::Pairs chip;
    std::vector<Instr> records;

    explicit Script(std::istream &in) {
        size_t begin = 0;
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
            } else if (word == "mark") {
                begin = records.size();
            } else {
                records.push_back(parse(words, KINDS.at(word)));
            }
        }
    }
};

}  // namespace

int main(int count, char **arguments) try {
    const Script script(std::cin);
    Timeline timeline{Chip(script.chip)};
    const bool rate = count > 1 && !std::strcmp(arguments[1], "--rate");
    FILE *trace = count > 1 && !rate ? std::fopen(arguments[1], "w") : nullptr;
    if (trace) timeline.trace_to(trace);
    const auto begin = std::chrono::steady_clock::now();
    for (const Instr &instr : script.records) timeline.take(instr);
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
