#include "diagnostics.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace sim {

namespace {
constexpr size_t max_warnings = 64;  // limits the memory that a hostile kernel can use up

std::string with_hint(const std::string &message, const std::string &hint) {
    return hint.empty() ? message : message + ": " + hint;
}
}  // namespace

std::string text(const char *format, ...) {
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    if (length < 0) return {};
    return std::string(buffer, std::min<size_t>(static_cast<size_t>(length), sizeof buffer - 1));
}

void Diagnostics::fail(Rule rule, const std::string &message) const { fail(rule, message, text_of(rule).hint); }

void Diagnostics::fail(Rule rule, const std::string &message, const std::string &hint) const {
    if (rule == Rule::Uninitialised) fail_if_suspected();
    throw DeviceFault{text_of(rule).id, with_hint(message, hint), line, core};
}

void Diagnostics::suspect(Rule rule, const std::string &message) {
    if (!suspected_) suspected_ = {text_of(rule).id, with_hint(message, text_of(rule).hint), line, core};
}

void Diagnostics::fail_if_suspected() const {
    if (suspected_) throw DeviceFault(*suspected_);
}

bool Diagnostics::warned(Rule rule) {
    for (Warning &warning : warnings_) {
        if (warning.rule == rule && warning.line == line) {
            ++warning.times;
            return true;
        }
    }
    return warnings_.size() >= max_warnings;
}

void Diagnostics::warn(Rule rule, const std::string &message) {
    if (warned(rule)) return;
    warnings_.push_back({rule, with_hint(message, text_of(rule).hint), line, core, 1});
}

}  // namespace sim
