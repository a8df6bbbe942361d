// Global memory: the tensors of the run, which core wrote which bytes, and which bytes were covered.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "../../include/abi.h"
#include "protocol/diagnostics.h"
#include "ownership.h"
#include "pages.h"

namespace sim {

struct TensorArg {
    enum Role { Input, Output, Workspace } role;
    uint8_t dtype;
    uint64_t bytes;
    uint8_t *data;         // nullptr in records-only mode
    bool kept = false;     // an output that holds something before the call
    bool scratch = false;  // an output that may keep uninitialised bytes: nobody but later launches reads it
};

// The bytes of a tensor that were touched. A group of bytes takes memory only if it is touched in part.
class Coverage {
public:
    explicit Coverage(uint64_t bytes);
    void add(uint64_t begin, uint64_t end);
    uint64_t covered() const { return covered_; }

private:
    static constexpr uint64_t group_bytes = 4096;
    struct Bits { uint64_t words[group_bytes / 64] = {}; };
    struct Group {
        uint16_t begin = 0, end = 0;  // the covered part, while it is contiguous
        std::unique_ptr<Bits> bits;
    };
    void add_to(Group &group, uint32_t begin, uint32_t end);

    Pages<Group> groups_;
    uint64_t covered_ = 0;
};

// A checked range of one tensor.
struct GlobalBytes {
    uint32_t tensor;
    uint64_t begin, end;  // byte offsets in it; `end` may lie in the padding after the tensor
};

class GlobalMemory {
public:
    GlobalMemory(const std::vector<TensorArg> &tensors, bool compute, uint8_t poison, const CoreOrder &order,
                 Diagnostics &diagnostics);

    // Checks that [address, address + bytes) lies in one tensor (or in the padding after it) and may be written.
    GlobalBytes locate(uint64_t address, uint64_t bytes, bool write, const char *what);
    // Records an access by a pipe of a core for coverage and for races between cores.
    void read_by(const GlobalBytes &range, uint32_t core, uint32_t pipe, const char *what);
    // `atomic` is 0 for a plain write; numbers of operations that commute are equal.
    void written_by(const GlobalBytes &range, uint32_t core, uint32_t pipe, uint32_t atomic, const char *what);

    // True if a range lies in a tensor that may be accessed in this way.
    bool undisturbed(uint64_t address, uint64_t bytes, bool write) const;
    // True if an access of a core to a range would meet one of another core that nothing orders.
    bool conflict(uint64_t address, uint64_t bytes, uint32_t core, uint32_t pipe, bool write);

    bool writable(uint32_t tensor) const { return tensors_[tensor].role != TensorArg::Input; }
    // Copies out of a tensor; bytes that were never written, or lie in the padding, are invalid.
    void load(const GlobalBytes &range, uint8_t *to, uint8_t *valid) const;
    void store(const GlobalBytes &range, const uint8_t *from, const uint8_t *valid);
    uint8_t *data(uint32_t tensor) const { return tensors_[tensor].data; }
    uint8_t *valid(uint32_t tensor) const { return tensors_[tensor].valid.get(); }
    bool all_valid(const GlobalBytes &range) const;
    std::string describe(uint32_t tensor) const;
    std::string describe(const GlobalBytes &range) const;
    // True if every byte of every output was written.
    bool all_written() const;
    // Covered bytes of each input and of each output, as JSON arrays.
    std::string read_json() const;
    std::string written_json() const;

private:
    struct Release {
        void operator()(uint8_t *bytes) const { std::free(bytes); }
    };
    struct Tensor : TensorArg {
        Coverage read, written;
        Ownership writer, reader;
        std::unique_ptr<uint8_t[], Release> valid;  // by byte; only for writable tensors
        explicit Tensor(const TensorArg &argument);
    };

    GlobalBytes inside(const GlobalBytes &range) const;
    void validate_kept(Tensor &tensor) const;
    void check_pieces() const;

    std::vector<Tensor> tensors_;
    uint64_t pieces_ = 0;  // that cores hold tensors in
    bool compute_;
    uint8_t poison_;
    const CoreOrder &order_;
    Claims claims_;
    Diagnostics &diagnostics_;
};

}  // namespace sim
