// Writes the device's replies as JSON. There is no parser: requests use a simpler format.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace sim {

inline std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (unsigned char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += static_cast<char>(c);
        } else if (c < 0x20 || c >= 0x7f) {  // kernel output may be arbitrary bytes
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", c);
            out += escape;
        } else {
            out += static_cast<char>(c);
        }
    }
    return out + '"';
}

inline std::string number(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

// Builds an object field by field: Object().set("a", 1.0).set("b", "text").done().
class Object {
public:
    Object &set(std::string_view key, std::string_view text) { return raw(key, quoted(text)); }
    Object &set(std::string_view key, const char *text) { return raw(key, quoted(text)); }
    Object &set(std::string_view key, double value) { return raw(key, number(value)); }
    Object &set(std::string_view key, uint64_t value) { return raw(key, std::to_string(value)); }
    Object &set(std::string_view key, int64_t value) { return raw(key, std::to_string(value)); }
    Object &set(std::string_view key, int value) { return raw(key, std::to_string(value)); }
    Object &set(std::string_view key, uint32_t value) { return raw(key, std::to_string(value)); }
    Object &set(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
    Object &raw(std::string_view key, std::string_view json) {
        if (body_.size() > 1) body_ += ',';
        body_ += quoted(key);
        body_ += ':';
        body_ += json;
        return *this;
    }
    std::string done() const { return body_ + "}"; }

private:
    std::string body_ = "{";
};

class Array {
public:
    Array &raw(std::string_view json) {
        if (body_.size() > 1) body_ += ',';
        body_ += json;
        return *this;
    }
    std::string done() const { return body_ + "]"; }

private:
    std::string body_ = "[";
};

}  // namespace sim
