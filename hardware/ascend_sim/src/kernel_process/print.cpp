// printf for kernels, restricted to safe conversions. Text is read only where kernel code may read.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "kernel_process.h"
#include "noise.h"
#include "guard.h"

namespace sim::kernel_process {
namespace {

enum : size_t { MAX_PRINTED = 1023 };

// The kernel's text up to its end, or up to the first byte that it may not read.
std::string text_at(const char *text) {
    std::string copy;
    while (copy.size() < MAX_PRINTED && guard::may_read(reinterpret_cast<uintptr_t>(text), 1) && *text) copy += *text++;
    return copy;
}

template <class Value>
std::string converted(const std::string &how, Value value) {
    char text[MAX_PRINTED + 1];
    std::snprintf(text, sizeof text, how.c_str(), value);
    return text;
}

// One conversion without its percent sign: flags, width, precision, size, letter.
std::string convert(const std::string &how, va_list *arguments) {
    const bool wide = how.find_first_of("lzjt") != std::string::npos;
    switch (how.back()) {
        case '%': return "%";
        case 'd':
        case 'i':
        case 'u':
        case 'x':
        case 'X':
        case 'o':
        case 'c':
            return wide ? converted("%" + how, va_arg(*arguments, long))
                        : converted("%" + how, va_arg(*arguments, int));
        case 'f':
        case 'F':
        case 'e':
        case 'E':
        case 'g':
        case 'G': return converted("%" + how, va_arg(*arguments, double));
        case 'p': return converted("%" + how, va_arg(*arguments, void *));
        case 's': return converted("%" + how, text_at(va_arg(*arguments, const char *)).c_str());
    }
    return "%" + how;
}

std::string formatted(const std::string &format, va_list *arguments) {
    std::string text;
    for (size_t at = 0; at < format.size() && text.size() < MAX_PRINTED;) {
        if (format[at] != '%') {
            text += format[at++];
            continue;
        }
        const size_t letter = format.find_first_not_of("-+ #0123456789.hlzjt", at + 1);
        const std::string how = format.substr(at + 1, letter - at);
        if (letter == std::string::npos || how.size() > 12) return text + format.substr(at);
        text += convert(how, arguments);
        at = letter + 1;
    }
    return text;
}

[[gnu::noinline]] void print(int32_t line, const char *format, va_list *arguments) {
    const std::string text = formatted(text_at(format), arguments);
    for (size_t at = 0; at < text.size(); at += sizeof(asc_text) - 1) {
        asc_text piece{};
        std::memcpy(piece.bytes, text.data() + at, std::min(sizeof piece.bytes - 1, text.size() - at));
        wire::print(piece, line);
    }
}

}  // namespace
}  // namespace sim::kernel_process

extern "C" void asc_printf(int32_t line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sim::kernel_process::print(line, format, &arguments);
    va_end(arguments);
    sim::kernel_process::forget_printing();
}
