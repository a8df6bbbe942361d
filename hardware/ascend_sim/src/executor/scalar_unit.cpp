// The scalar unit: accesses to single elements of on-chip and global memory, and kernel output (printf).
#include "numerics/conversions.h"
#include "numerics/dtype.h"
#include "executor.h"

namespace sim {

namespace {
constexpr uint32_t any_dtype = 0x0fff;
constexpr uint64_t cache_line = 64;
constexpr size_t cache_lines = 512, max_printed = 64 << 10, max_dumped = 256;

std::string printable(const asc_text &text) {
    const size_t n = static_cast<size_t>(std::find(text.bytes, text.bytes + sizeof text.bytes, '\0') - text.bytes);
    return std::string(text.bytes, n);
}
}  // namespace

// ---- on-chip -------------------------------------------------------------------------------------------------------

asc_block Executor::read_local(uint32_t dtype, asc_local tensor, uint64_t index, int32_t line) {
    running(line);
    const uint32_t element = element_of(dtype, any_dtype, "GetValue");
    if (index >= tensor.bytes / element) {
        diagnostics_.fail(Rule::OutOfBounds, text("GetValue(%llu) on a tensor of %u elements",
                                                  static_cast<unsigned long long>(index), tensor.bytes / element));
    }
    bytes_of(tensor, (index + 1) * element, "GetValue", "local");
    const uint32_t addr = tensor.addr + static_cast<uint32_t>(index) * element;
    reread(dtype, static_cast<uint64_t>(tensor.space) << 32 | addr, 0, line);
    asc_block block = {};
    if (!options_.compute) return block;
    const uint32_t begin = addr / ASC_BLOCK * ASC_BLOCK,
                   end = std::min<uint32_t>(begin + ASC_BLOCK, capacity_of(tensor.space));
    std::memcpy(block.bytes, core_->memory(tensor.space).data(begin, end), end - begin);
    return block;
}

// Charges and checks one read. `where` is a global address, or for on-chip memory the space in the upper half and the
// address in the lower half.
void Executor::reread(uint32_t dtype, uint64_t where, uint32_t global, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, any_dtype, "GetValue");
    data_dependent_ = true;
    if (where % element)
        diagnostics_.fail(Rule::Alignment, "GetValue at an address that is not a multiple of its element",
                          "check the offset of the tensor");
    if (global) {
        const GlobalBytes range = global_.locate(where, element, false, "GlobalTensor.GetValue");
        Rows rows = {range.tensor * ASC_GM_STRIDE + range.begin, element, 1, element};
        order_global(core, ASC_S, range.tensor, rows, false, "GlobalTensor.GetValue");
        global_.read_by(range, core.id, ASC_S, "GlobalTensor.GetValue");
        if (options_.compute && !global_.all_valid(range)) {
            diagnostics_.fail(Rule::Uninitialised,
                              "GlobalTensor.GetValue reads " + global_.describe(range) + ", which was never written");
        }
        Instr record = instr(Kind::ScalarGlobal, ASC_S);
        record.gm = where;
        count("GetValue global");
        emit(record);
        remember(dtype, where, true, false);
        return;
    }
    const uint32_t space = static_cast<uint32_t>(where >> 32), addr = static_cast<uint32_t>(where);
    const uint32_t capacity = capacity_of(space);
    if (capacity == 0 || addr > capacity - element)
        diagnostics_.fail(Rule::Protocol, "GetValue outside on-chip memory");
    touch(core, ASC_S, {space, addr, addr + element}, false, "GetValue");
    if (options_.compute && !core.memory(space).all_valid(addr, addr + element)) {
        diagnostics_.fail(Rule::Uninitialised, text("GetValue reads %s[0x%x] (%s), which was never written",
                                                    name_of_space(space), addr, core.describe(space, addr).c_str()));
    }
    Instr record = instr(Kind::ScalarLocal, ASC_S);
    record.a = addr;
    record.space = static_cast<uint8_t>(space);
    count("GetValue");
    emit(record);
    remember(dtype, where, false, false);
}

void Executor::write_local(uint32_t dtype, asc_local tensor, uint64_t index, uint64_t bits, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, any_dtype, "SetValue");
    if (index >= tensor.bytes / element) {
        diagnostics_.fail(Rule::OutOfBounds, text("SetValue(%llu) on a tensor of %u elements",
                                                  static_cast<unsigned long long>(index), tensor.bytes / element));
    }
    bytes_of(tensor, (index + 1) * element, "SetValue", "local");
    store_local(core, dtype, tensor.space, tensor.addr + static_cast<uint32_t>(index) * element, bits);
}

void Executor::store_local(Core &core, uint32_t dtype, uint32_t space, uint32_t addr, uint64_t bits) {
    const uint32_t element = bytes_of_dtype(dtype);
    touch(core, ASC_S, {space, addr, addr + element}, true, "SetValue");
    Instr record = instr(Kind::ScalarLocal, ASC_S);
    record.a = addr;
    record.b = 1;
    record.space = static_cast<uint8_t>(space);
    count("SetValue");
    emit(record);
    remember(dtype, static_cast<uint64_t>(space) << 32 | addr, false, true);
    if (!options_.compute) return;
    std::memcpy(core.memory(space).data(addr, addr + element), &bits, element);
    core.memory(space).set_valid(addr, addr + element, true);
}

void Executor::remember(uint32_t dtype, uint64_t where, bool global, bool write) {
    history_.push({where, 0, diagnostics_.line, code_before_, static_cast<uint8_t>(dtype), global, write});
}

// ---- global --------------------------------------------------------------------------------------------------------

asc_block Executor::read_global(uint32_t dtype, asc_global address, int32_t line) {
    reread(dtype, address, 1, line);
    return block_around(global_.locate(address, bytes_of_dtype(dtype), false, "GlobalTensor.GetValue"));
}

// Bytes that were never written are ones, so that a number is NaN: kernel code must not see what memory is filled with.
asc_block Executor::block_around(const GlobalBytes &range) const {
    asc_block block = {};
    if (!options_.compute) return block;
    const uint64_t begin = range.begin / ASC_BLOCK * ASC_BLOCK;
    uint8_t valid[ASC_BLOCK];
    global_.load({range.tensor, begin, begin + ASC_BLOCK}, block.bytes, valid);
    for (size_t i = 0; i < ASC_BLOCK; ++i)
        if (!valid[i]) block.bytes[i] = 0xff;
    return block;
}

void Executor::write_global(uint32_t dtype, asc_global address, uint64_t bits, int32_t line) {
    Core &core = running(line);
    const char *what = "GlobalTensor.SetValue";
    const uint32_t element = element_of(dtype, any_dtype, what);
    const GlobalBytes range = global_.locate(address, element, true, what);
    if (address % element)
        diagnostics_.fail(Rule::Alignment, text("%s at an address that is not a multiple of its element", what));
    const Rows rows = {range.tensor * ASC_GM_STRIDE + range.begin, element, 1, element};
    order_global(core, ASC_S, range.tensor, rows, true, what);
    global_.written_by(range, core.id, ASC_S, 0, what);
    make_dirty(core, rows.begin / cache_line, range.tensor);
    Instr record = instr(Kind::ScalarGlobal, ASC_S);
    record.gm = address;
    record.b = 1;
    count("SetValue global");
    emit(record);
    remember(dtype, address, true, true);
    if (!options_.compute) return;
    uint8_t valid[8];
    std::memset(valid, 1, sizeof valid);
    global_.store(range, reinterpret_cast<const uint8_t *>(&bits), valid);
}

void Executor::make_dirty(Core &core, uint64_t cached, uint32_t tensor) {
    if (core.dirty_lines.count(cached)) return;
    const auto writer = dirty_lines_.emplace(cached, core.id).first;
    if (writer->second != core.id) {
        diagnostics_.fail(Rule::CacheLine,
                          text("GlobalTensor.SetValue: cores %u and %u write the same cache line of 64 bytes in %s",
                               writer->second, core.id, global_.describe(tensor).c_str()));
    }
    if (core.dirty_lines.size() >= cache_lines) write_back(core);  // it holds no more
    core.dirty_lines.insert(cached);
}

void Executor::write_back(Core &core) {
    for (uint64_t line : core.dirty_lines) dirty_lines_.erase(line);
    core.dirty_lines.clear();
}

void Executor::cache_clean(asc_global address, uint32_t entire, int32_t line) {
    Core &core = running(line);
    if (entire > 1) diagnostics_.fail(Rule::Protocol, "DataCacheCleanAndInvalid");
    if (entire) write_back(core);
    const uint64_t cached = (address - ASC_GM_BASE) / cache_line;
    if (core.dirty_lines.erase(cached)) dirty_lines_.erase(cached);
    Instr record = instr(Kind::CacheClean, ASC_S);
    record.gm = address;
    record.a = entire;
    record.op = static_cast<uint16_t>(Call::Flag);
    emit(record);
}

uint64_t Executor::gather_mask_count(int32_t line) {
    Core &core = running(line);
    data_dependent_ = true;
    wait_for(core, ASC_S, ASC_V);
    return core.gathered;
}

// ---- messages ------------------------------------------------------------------------------------------------------

void Executor::print(asc_text message, int32_t line) {
    running(line);
    if (printed_.size() < max_printed) printed_ += printable(message);
    overhead(Call::Print);
}

void Executor::dump(uint32_t dtype, asc_local tensor, uint32_t description, uint32_t count, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, any_dtype, "DumpTensor");
    const Bytes range = bytes_of(tensor, static_cast<uint64_t>(count) * element, "DumpTensor", "local");
    if (tensor.addr % element)
        diagnostics_.fail(Rule::Alignment,
                          text("DumpTensor at 0x%x, which is not a multiple of its element", tensor.addr));
    touch(core, ASC_S, range, false, "DumpTensor");
    overhead(Call::Print);
    if (!options_.compute || printed_.size() >= max_printed) return;
    printed_ += text("DumpTensor %u, core %u, line %d:", description, core.id, line);
    const uint8_t *data = core.memory(tensor.space).data(range.begin, range.end),
                  *valid = core.memory(tensor.space).valid(range.begin, range.end);
    for (uint32_t i = 0; i < std::min<uint32_t>(count, max_dumped); ++i) {
        printed_ += ' ' + (std::memchr(valid + i * element, 0, element) ? std::string("?")
                                                                        : value_text(dtype, data + i * element));
    }
    printed_ += count > max_dumped ? " ...\n" : "\n";
}

void Executor::assert_failed(asc_text message, int32_t line) {
    at(line);
    diagnostics_.fail(Rule::Assert, "assertion failed: " + printable(message));
}

void Executor::misuse(asc_text message, int32_t line) {
    at(line);
    diagnostics_.fail(Rule::Misuse, printable(message));
}

}  // namespace sim
