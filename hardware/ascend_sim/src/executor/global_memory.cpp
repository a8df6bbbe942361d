#include "global_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "protocol/json.h"

namespace sim {

namespace {
constexpr uint64_t padding_bytes = 512;    // allocations are this much larger than their tensors
constexpr uint64_t most_pieces = 1 << 26;  // 512 MB
constexpr const char *role_names[] = {"input", "output", "workspace"};

uint64_t groups_for(uint64_t bytes, uint64_t group_bytes) { return (bytes + group_bytes - 1) / group_bytes; }

// Outputs are written as a whole: the system sets up a few large pages in less time than many small ones.
uint8_t *zeros(uint64_t bytes, bool dense) {
    constexpr uintptr_t page = 65536;  // the largest page size of the supported machines
    void *memory = std::calloc(1, bytes);
    if (!memory) throw std::bad_alloc();
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory), aligned = (begin + page - 1) / page * page;
    if (dense && begin + bytes > aligned)
        madvise(reinterpret_cast<void *>(aligned), begin + bytes - aligned, MADV_HUGEPAGE);
    return static_cast<uint8_t *>(memory);
}
}  // namespace

// ---- coverage ------------------------------------------------------------------------------------------------------

Coverage::Coverage(uint64_t bytes) : groups_(groups_for(bytes, group_bytes)) {}

void Coverage::add(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end;) {
        const uint64_t group = at / group_bytes, start = group * group_bytes;
        const uint64_t stop = std::min(end, start + group_bytes);
        if (group >= groups_.size()) return;  // the padding after the tensor is not counted
        add_to(groups_.at(group), static_cast<uint32_t>(at - start), static_cast<uint32_t>(stop - start));
        at = stop;
    }
}

void Coverage::add_to(Group &group, uint32_t begin, uint32_t end) {
    if (!group.bits) {
        if (begin >= group.begin && end <= group.end) return;
        const bool empty = group.begin == group.end;
        if (empty || (begin <= group.end && end >= group.begin)) {
            covered_ -= group.end - group.begin;
            group.begin = static_cast<uint16_t>(empty ? begin : std::min<uint32_t>(group.begin, begin));
            group.end = static_cast<uint16_t>(empty ? end : std::max<uint32_t>(group.end, end));
            covered_ += group.end - group.begin;
            return;
        }
        group.bits = std::make_unique<Bits>();
        for (uint32_t i = group.begin; i < group.end; ++i) group.bits->words[i / 64] |= 1ull << (i % 64);
    }
    for (uint32_t i = begin; i < end;) {
        const uint32_t stop = std::min(end, (i / 64 + 1) * 64), n = stop - i;
        const uint64_t wanted = (n == 64 ? ~0ull : (1ull << n) - 1) << (i % 64);
        uint64_t &word = group.bits->words[i / 64];
        covered_ += static_cast<uint64_t>(__builtin_popcountll(wanted & ~word));
        word |= wanted;
        i = stop;
    }
}

// ---- tensors -------------------------------------------------------------------------------------------------------

GlobalMemory::Tensor::Tensor(const TensorArg &argument)
    : TensorArg(argument), read(bytes), written(bytes), writer(role == Input ? 0 : bytes),
      reader(role == Input ? 0 : bytes) {}

GlobalMemory::GlobalMemory(const std::vector<TensorArg> &tensors, bool compute, uint8_t poison, const CoreOrder &order,
                           Diagnostics &diagnostics)
    : compute_(compute), poison_(poison), order_(order), claims_(order), diagnostics_(diagnostics) {
    tensors_.reserve(tensors.size());
    for (const TensorArg &argument : tensors) {
        tensors_.emplace_back(argument);
        if (!compute || argument.role == TensorArg::Input) continue;
        tensors_.back().valid.reset(zeros(argument.bytes + 1, argument.role == TensorArg::Output));
        if (argument.kept) validate_kept(tensors_.back());
    }
}

// What an output holds before the call is valid, but for words of poison: memory that was allocated and not written.
void GlobalMemory::validate_kept(Tensor &tensor) const {
    uint64_t unwritten, word;
    std::memset(&unwritten, poison_, sizeof unwritten);
    for (uint64_t at = 0; at < tensor.bytes; at += sizeof word) {
        const uint64_t n = std::min<uint64_t>(sizeof word, tensor.bytes - at);
        word = unwritten;
        std::memcpy(&word, tensor.data + at, n);
        if (poison_ == 0 || word != unwritten) std::memset(tensor.valid.get() + at, 1, n);
    }
}

std::string GlobalMemory::describe(uint32_t tensor) const {
    uint32_t number = 0;
    for (uint32_t i = 0; i < tensor; ++i) number += tensors_[i].role == tensors_[tensor].role;
    return text("%s %u", role_names[tensors_[tensor].role], number);
}

std::string GlobalMemory::describe(const GlobalBytes &range) const {
    return text("bytes [%llu, %llu) of ", static_cast<unsigned long long>(range.begin),
                static_cast<unsigned long long>(range.end)) +
           describe(range.tensor);
}

GlobalBytes GlobalMemory::locate(uint64_t address, uint64_t bytes, bool write, const char *what) {
    const uint64_t relative = address - ASC_GM_BASE, tensor = relative / ASC_GM_STRIDE,
                   begin = relative % ASC_GM_STRIDE;
    if (address < ASC_GM_BASE || tensor >= tensors_.size()) {
        diagnostics_.fail(Rule::GmAddress,
                          text("%s uses global address 0x%llx, which lies in no argument of the kernel", what,
                               static_cast<unsigned long long>(address)));
    }
    const Tensor &held = tensors_[tensor];
    const uint32_t id = static_cast<uint32_t>(tensor);
    const auto complain = [&](const char *how) {
        return text("%s %s %s, which has %llu bytes", what, how, describe({id, begin, begin + bytes}).c_str(),
                    static_cast<unsigned long long>(held.bytes));
    };
    if (bytes > ASC_GM_STRIDE || begin + bytes > held.bytes + padding_bytes) {
        diagnostics_.fail(Rule::GmOutOfBounds, complain(write ? "writes" : "reads"));
    }
    if (write && held.role == TensorArg::Input) diagnostics_.fail(Rule::WriteToInput, complain("writes"));
    if (begin + bytes > held.bytes && !diagnostics_.warned(Rule::GmPadding)) {
        diagnostics_.warn(Rule::GmPadding, complain(write ? "writes" : "reads"));
    }
    return {id, begin, begin + bytes};
}

GlobalBytes GlobalMemory::inside(const GlobalBytes &range) const {
    const uint64_t bytes = tensors_[range.tensor].bytes;
    return {range.tensor, std::min(range.begin, bytes), std::min(range.end, bytes)};
}

void GlobalMemory::read_by(const GlobalBytes &whole, uint32_t core, uint32_t pipe, const char *what) {
    const GlobalBytes range = inside(whole);
    if (range.begin == range.end) return;
    Tensor &tensor = tensors_[range.tensor];
    tensor.read.add(range.begin, range.end);
    if (tensor.role == TensorArg::Input) return;
    const uint32_t alone = claims_.alone(core, pipe, 0), epoch = order_.epoch();
    if (uint32_t holder = tensor.writer.conflict(range.begin, range.end, alone, epoch, claims_)) {
        diagnostics_.fail(Rule::GmRace,
                          text("%s reads %s while %s may still be writing it", what, describe(range).c_str(),
                               claims_.name(holder).c_str()),
                          "put SyncAll between them");
    }
    pieces_ += tensor.reader.claim(range.begin, range.end, claims_.alone(core, pipe, 1), epoch, claims_);
    check_pieces();
}

void GlobalMemory::written_by(const GlobalBytes &whole, uint32_t core, uint32_t pipe, uint32_t atomic,
                              const char *what) {
    const GlobalBytes range = inside(whole);
    if (range.begin == range.end) return;
    Tensor &tensor = tensors_[range.tensor];
    tensor.written.add(range.begin, range.end);
    const uint32_t alone = claims_.alone(core, pipe, 0), epoch = order_.epoch();
    if (uint32_t holder = tensor.reader.conflict(range.begin, range.end, alone, epoch, claims_)) {
        diagnostics_.fail(Rule::GmRace,
                          text("%s writes %s while %s may still be reading it", what, describe(range).c_str(),
                               claims_.name(holder).c_str()),
                          "put SyncAll between them");
    }
    const uint32_t number = claims_.alone(core, pipe, atomic);
    if (uint32_t holder = tensor.writer.conflict(range.begin, range.end, number, epoch, claims_)) {
        diagnostics_.fail(Rule::GmRace, text("%s writes %s, which %s may be writing at the same time", what,
                                             describe(range).c_str(), claims_.name(holder).c_str()));
    }
    pieces_ += tensor.writer.claim(range.begin, range.end, number, epoch, claims_);
    check_pieces();
}

void GlobalMemory::check_pieces() const {
    if (pieces_ + claims_.pieces() > most_pieces)
        diagnostics_.fail(Rule::GmPieces, "the cores cut global memory into too many pieces");
}

bool GlobalMemory::undisturbed(uint64_t address, uint64_t bytes, bool write) const {
    const uint64_t relative = address - ASC_GM_BASE, tensor = relative / ASC_GM_STRIDE;
    if (address < ASC_GM_BASE || tensor >= tensors_.size() || bytes > ASC_GM_STRIDE) return false;
    const Tensor &held = tensors_[tensor];
    return relative % ASC_GM_STRIDE + bytes <= held.bytes && !(write && held.role == TensorArg::Input);
}

bool GlobalMemory::conflict(uint64_t address, uint64_t bytes, uint32_t core, uint32_t pipe, bool write) {
    const uint64_t relative = address - ASC_GM_BASE, begin = relative % ASC_GM_STRIDE, end = begin + bytes;
    const Tensor &tensor = tensors_[relative / ASC_GM_STRIDE];
    if (tensor.role == TensorArg::Input) return false;
    const uint32_t alone = claims_.alone(core, pipe, 0), epoch = order_.epoch();
    return tensor.writer.conflict(begin, end, alone, epoch, claims_) ||
           (write && tensor.reader.conflict(begin, end, alone, epoch, claims_));
}

void GlobalMemory::load(const GlobalBytes &whole, uint8_t *to, uint8_t *valid) const {
    const GlobalBytes range = inside(whole);
    const Tensor &tensor = tensors_[range.tensor];
    const uint64_t n = range.end - range.begin, rest = whole.end - whole.begin - n;
    std::memcpy(to, tensor.data + range.begin, n);
    if (tensor.valid) {
        std::memcpy(valid, tensor.valid.get() + range.begin, n);
    } else {
        std::memset(valid, 1, n);
    }
    std::memset(to + n, poison_, rest);
    std::memset(valid + n, 0, rest);
}

void GlobalMemory::store(const GlobalBytes &whole, const uint8_t *from, const uint8_t *valid) {
    const GlobalBytes range = inside(whole);
    Tensor &tensor = tensors_[range.tensor];
    const uint64_t n = range.end - range.begin;
    const void *hole = std::memchr(valid, 0, n);
    if (tensor.role == TensorArg::Output && hole && !tensor.scratch) {
        const uint64_t at = range.begin + static_cast<uint64_t>(static_cast<const uint8_t *>(hole) - valid);
        diagnostics_.fail(Rule::Uninitialised,
                          text("byte %llu of %s would be uninitialised on-chip memory",
                               static_cast<unsigned long long>(at), describe(range.tensor).c_str()));
    }
    std::memcpy(tensor.data + range.begin, from, n);
    std::memcpy(tensor.valid.get() + range.begin, valid, n);
    if (hole && tensor.scratch) {  // the next launch recognises these bytes by their poison
        for (uint64_t i = 0; i < n; ++i)
            if (!valid[i]) tensor.data[range.begin + i] = poison_;
    }
}

bool GlobalMemory::all_valid(const GlobalBytes &whole) const {
    const GlobalBytes range = inside(whole);
    const Tensor &tensor = tensors_[range.tensor];
    if (range.end != whole.end) return false;
    return !tensor.valid || range.begin == range.end ||
           !std::memchr(tensor.valid.get() + range.begin, 0, range.end - range.begin);
}

bool GlobalMemory::all_written() const {
    return std::all_of(tensors_.begin(), tensors_.end(), [](const Tensor &tensor) {
        return tensor.role != TensorArg::Output || tensor.written.covered() >= tensor.bytes;
    });
}

std::string GlobalMemory::read_json() const {
    Array list;
    for (const Tensor &tensor : tensors_) {
        if (tensor.role == TensorArg::Input) list.raw(std::to_string(tensor.read.covered()));
    }
    return list.done();
}

std::string GlobalMemory::written_json() const {
    Array list;
    for (const Tensor &tensor : tensors_) {
        if (tensor.role == TensorArg::Output) list.raw(std::to_string(tensor.written.covered()));
    }
    return list.done();
}

}  // namespace sim
