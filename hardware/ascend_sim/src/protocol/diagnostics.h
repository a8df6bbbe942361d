// Messages to the author: a fault ends the run, a warning does not.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rules.h"

namespace sim {

// Ends the run. `message` is one line; `core` is -1 outside a core.
struct DeviceFault {
    std::string rule, message;
    int32_t line;
    int32_t core;
};

// printf into a string.
std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Tracks the position in the author's program, so that every check can report it.
class Diagnostics {
public:
    struct Warning {
        Rule rule;
        std::string message;
        int32_t line, core;
        uint64_t times;
    };

    int32_t line = 0;
    int32_t core = -1;

    // Throws a DeviceFault. Without an explicit hint the message ends in the rule's hint.
    [[noreturn]] void fail(Rule rule, const std::string &message) const;
    [[noreturn]] void fail(Rule rule, const std::string &message, const std::string &hint) const;
    // Remembers a fault that hardware passes over in silence. It is reported if the result depends on it: instead of an
    // uninitialised byte, or by `fail_if_suspected`. The first of a run is kept.
    void suspect(Rule rule, const std::string &message);
    void fail_if_suspected() const;
    // Keeps the first warning of each rule and line and counts the rest. Call `warned` before building a message.
    void warn(Rule rule, const std::string &message);
    bool warned(Rule rule);
    const std::vector<Warning> &warnings() const { return warnings_; }

private:
    std::vector<Warning> warnings_;
    std::optional<DeviceFault> suspected_;
};

}  // namespace sim
