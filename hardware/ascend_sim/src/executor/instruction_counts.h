// How often each instruction ran, counted by name.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace sim {

// Names are literals: compared by address while counting, by text in the report.
class InstructionCounts {
public:
    void count(const char *name, uint64_t times = 1) {
        size_t at = (reinterpret_cast<uintptr_t>(name) >> 2) % places;
        while (entries_[at].name != name && entries_[at].name)
            at = (at + 1) % places;  // there are fewer names than places, so a free place exists
        entries_[at].name = name;
        entries_[at].times += times;
    }

    std::map<std::string, uint64_t> sorted() const {
        std::map<std::string, uint64_t> names;
        for (const Entry &entry : entries_) {
            if (entry.name) names[entry.name] += entry.times;
        }
        return names;
    }

private:
    struct Entry {
        const char *name = nullptr;
        uint64_t times = 0;
    };
    static constexpr size_t places = 1024;
    Entry entries_[places];
};

}  // namespace sim
