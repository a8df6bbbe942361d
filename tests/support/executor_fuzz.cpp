// Sends random records through the executor. Usage: executor_fuzz SEED RECORDS. Faults are what it is for; a crash, a
// sanitizer's report or any other exception is a bug.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <random>

#include "executor/executor.h"

using namespace sim;

namespace {

std::mt19937_64 source;

uint64_t below(uint64_t n) { return source() % n; }
template <size_t N>
uint64_t one_of(const uint64_t (&values)[N]) { return values[below(N)]; }

// Mostly small and plausible, sometimes at an edge, rarely anything at all.
uint64_t number() {
    static const uint64_t edges[] = {0, 1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1024, 4095, 4096, 65535, 65536,
                                     196608, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 36, 1ull << 63, ~0ull};
    switch (below(8)) {
        case 0: return one_of(edges);
        case 1: return source();
        case 2: return below(4096);
        default: return below(12);
    }
}

uint32_t size_in_bytes() {
    static const uint64_t sizes[] = {0, 32, 64, 256, 512, 1024, 4096, 16384, 65536, 196608};
    return static_cast<uint32_t>(below(16) ? one_of(sizes) : number());
}

asc_local local() {
    static const uint64_t places[] = {0, 32, 256, 1024, 4096, 8192, 16384, 65536, 131072, 196608 - 256};
    asc_local tensor;
    tensor.addr = static_cast<uint32_t>(below(16) ? one_of(places) + (below(8) ? 0 : below(64)) : number());
    tensor.bytes = size_in_bytes();
    tensor.space = static_cast<uint32_t>(below(6) ? ASC_UB : below(9));
    return tensor;
}

asc_global global() {
    if (!below(16)) return number();
    return ASC_GM_BASE + below(5) * ASC_GM_STRIDE + (below(4) ? 32 * below(128) : number());
}

uint16_t stride() { return static_cast<uint16_t>(below(8) ? below(10) : number()); }

asc_walk walk() {
    asc_walk w = {};
    w.form = static_cast<uint16_t>(below(24) ? below(3) : number());
    w.count = static_cast<uint32_t>(w.form == ASC_COUNT ? (below(4) ? below(512) : number()) : (below(4) ? 0 : below(130)));
    w.mask[0] = below(2) ? ~0ull : source();
    w.mask[1] = below(2) ? 0 : source();
    w.repeat = static_cast<uint16_t>(below(8) ? below(6) : number());
    for (uint16_t *field : {&w.dst_block, &w.src0_block, &w.src1_block}) *field = below(3) ? 1 : stride();
    for (uint16_t *field : {&w.dst_repeat, &w.src0_repeat, &w.src1_repeat}) *field = below(3) ? 8 : stride();
    return w;
}

asc_burst burst() {
    asc_burst b;
    b.count = static_cast<uint32_t>(below(8) ? 1 + below(5) : number());
    b.bytes = static_cast<uint32_t>(below(8) ? 32 * below(20) : number());
    b.src_gap = below(2) ? 0 : 32 * below(20);
    b.dst_gap = below(2) ? 0 : (below(8) ? 32 * below(20) : number());
    return b;
}

asc_nd2nz nd2nz() {
    asc_nd2nz s;
    uint32_t *fields[] = {&s.nd_num, &s.n_value, &s.d_value, &s.src_nd_stride, &s.src_d_value, &s.dst_c0_stride, &s.dst_n_stride, &s.dst_nz_stride};
    for (uint32_t *field : fields) *field = static_cast<uint32_t>(below(8) ? below(40) : number());
    return s;
}

asc_tile tile() {
    asc_tile t;
    uint32_t *fields[] = {&t.rows, &t.columns, &t.valid_rows, &t.valid_columns, &t.axis, &t.flags};
    for (uint32_t *field : fields) *field = static_cast<uint32_t>(below(8) ? 8 * below(9) : number());
    if (below(2)) t.axis = static_cast<uint32_t>(below(2)), t.flags = static_cast<uint32_t>(below(2));
    return t;
}

asc_matrix matrix() {
    const auto flag = [] { return static_cast<uint16_t>(below(40) ? below(2) : number()); };
    return {global(), static_cast<uint32_t>(below(8) ? below(4) : number()), flag(), flag()};
}

asc_matmul_shape matmul_shape() {
    asc_matmul_shape s;
    uint32_t *fields[] = {&s.m, &s.n, &s.k, &s.lda, &s.ldb, &s.ldc, &s.base_m, &s.base_n, &s.base_k, &s.depth_a, &s.depth_b, &s.batch};
    for (uint32_t *field : fields) *field = static_cast<uint32_t>(below(10) ? below(40) : number());
    return s;
}

// A struct of 32-bit numbers, most of them below `limit`.
template <class T>
T fields(uint32_t limit) {
    uint32_t numbers[sizeof(T) / 4];
    for (uint32_t &field : numbers) field = static_cast<uint32_t>(below(8) ? (below(2) ? below(2) : below(limit)) : number());
    T made;
    std::memcpy(&made, numbers, sizeof made);
    return made;
}

asc_lists lists() {
    asc_lists made;
    for (asc_local &list : made.list) list = local();
    for (uint32_t &count : made.count) count = static_cast<uint32_t>(below(8) ? below(40) : number());
    made.lists = static_cast<uint32_t>(below(8) ? 2 + below(3) : number());
    made.repeat = static_cast<uint32_t>(below(8) ? 1 : number());
    made.until_empty = static_cast<uint32_t>(below(16) ? below(2) : number());
    return made;
}

asc_image image() {
    asc_image made = fields<asc_image>(6);
    made.h += 4, made.w += 4;
    if (below(4)) made.k_extent = 32 * (1 + below(3)), made.m_extent = 16 * (1 + below(3)), made.k_start = made.m_start = 0;
    return made;
}

asc_blocks16 blocks16() {
    asc_blocks16 made;
    for (uint32_t &addr : made.dst) addr = local().addr;
    for (uint32_t &addr : made.src) addr = local().addr;
    if (below(2)) for (uint32_t i = 0; i < 16; ++i) made.dst[i] = 32 * i, made.src[i] = 1024 + 32 * i;
    return made;
}

asc_text words() {
    asc_text t;
    for (char &byte : t.bytes) byte = static_cast<char>(source());
    return t;
}

void send(Executor &executor, uint32_t op) {
    const int32_t line = static_cast<int32_t>(below(100));
    switch (op) {
#include "fuzz_calls.inc"
    }
}

bool ends_a_core(uint32_t call) {
    for (uint32_t other : {CALLS_THAT_END_A_CORE}) {
        if (call == other) return true;
    }
    return false;
}

struct Nowhere : Sink {
    uint64_t taken = 0;
    void take(const Instr &) override { ++taken; }
};

ExecutorOptions options(bool compute, std::vector<uint8_t> (&memory)[4]) {
    ExecutorOptions made;
    made.words = [](uint64_t *to, size_t count) { std::generate_n(to, count, number); };
    made.compute = compute;
    made.work_limit = below(4) ? 1u << 28 : 1000;
    static const TensorArg::Role roles[] = {TensorArg::Input, TensorArg::Output, TensorArg::Workspace, TensorArg::Input};
    static const uint64_t sizes[] = {8192, 8192, 65536, 37};
    for (int i = 0; i < 4; ++i) {
        memory[i].assign(sizes[i], 165);
        made.tensors.push_back({roles[i], ASC_F32, sizes[i], compute ? memory[i].data() : nullptr});
    }
    return made;
}

}  // namespace

int main(int count, char **arguments) {
    if (count != 3) return std::fprintf(stderr, "usage: executor_fuzz SEED RECORDS\n"), 2;
    source.seed(std::strtoull(arguments[1], nullptr, 10));
    const uint64_t records = std::strtoull(arguments[2], nullptr, 10);
    std::map<std::string, uint64_t> faults;
    uint64_t accepted = 0;
    for (uint64_t sent = 0; sent < records;) {
        std::vector<uint8_t> memory[4];
        Nowhere sink;
        Executor executor(options(below(3) != 0, memory), sink);
        try {
            executor.launch_begin(static_cast<uint32_t>(1 + below(3)), static_cast<uint32_t>(below(3)), 1);
            executor.core_begin(0, 1);
        } catch (const DeviceFault &) {
        }
        for (uint64_t i = 0, n = below(400); i < n && sent < records; ++i, ++sent) {
            try {
                // Fuzzing goes on behind a fault: whatever state it left must still be safe.
                const uint32_t call = static_cast<uint32_t>(below(CALLS));
                if (ends_a_core(call) && below(64)) continue;   // seldom, or little would follow
                send(executor, call);
                ++accepted;
            } catch (const DeviceFault &fault) {
                ++faults[fault.rule];
            }
        }
        executor.report_json();
    }
    std::printf("accepted %llu\n", static_cast<unsigned long long>(accepted));
    for (const auto &[rule, times] : faults) std::printf("%s %llu\n", rule.c_str(), static_cast<unsigned long long>(times));
    return 0;
}
