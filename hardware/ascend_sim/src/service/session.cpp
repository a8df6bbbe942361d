#include "session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "kernel_process/process.h"
#include "protocol/json.h"
#include "outputs.h"
#include "tensor_memory.h"
#include "timing/timeline.h"

namespace sim {
namespace {

// The budget cost of a record and of a scalar access in basic blocks, about equal to their host time.
constexpr uint64_t kRecordCost = 8, kAccessCost = 2;

uint64_t cost_of(uint16_t op) {
    switch (op) {
        case OP_access_loop: return 0;  // counted by its accesses
        case OP_read_local:
        case OP_read_global:
        case OP_reread:
        case OP_write_local:
        case OP_write_global: return kAccessCost;
        default: return kRecordCost;
    }
}

// Limit on processor seconds without a record; the budget of blocks is spent in less, also on slow machines. What one look
// at the clock may add to them: where a virtual machine stands still for seconds, the clock runs on.
constexpr double kSilence = 8.0, kMostPerLook = 0.2;

// Processor seconds between two deadlines above which a kernel counts as computing, not waiting.
constexpr double kStirring = 0.01;

// How often a session says that it is at work: records of large matrices take the device seconds each, and so may the
// timing of a long phase.
constexpr std::chrono::seconds kSign{5};

// The deadline for the next record. It limits waiting only: the total work of a kernel is limited by its budget, and a
// slow or busy host must not change the result.
std::chrono::steady_clock::time_point latest(const Request &request) {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(request.timeout_ms);
}

template <class Args>
Args unpack(const Record &record) {
    Args args;
    std::memcpy(static_cast<void *>(&args), record.payload, sizeof args);
    return args;
}

// The kernel process receives a sealed, unnamed copy of the code, so it needs no file system.
class Code {
public:
    explicit Code(const std::string &path) : copy_(memfd_create("kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat about{};
        if (copy_ < 0 || file < 0 || fstat(file, &about)) throw std::runtime_error("cannot read " + path);
        for (off_t done = 0; done < about.st_size;)
            if (sendfile(copy_, file, &done, static_cast<size_t>(about.st_size - done)) <= 0)
                throw std::runtime_error("cannot copy " + path);
        close(file);
        fchmod(copy_, 0555);
        fcntl(copy_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    }
    ~Code() { close(copy_); }
    Code(const Code &) = delete;
    Code &operator=(const Code &) = delete;
    int descriptor() const { return copy_; }

private:
    int copy_;
};

KernelTensor described(const TensorRequest &tensor, size_t id) {
    KernelTensor out{};
    out.ptr = reinterpret_cast<void *>(ASC_GM_BASE + id * ASC_GM_STRIDE);
    out.dtype = static_cast<int32_t>(tensor.dtype);
    out.ndim = static_cast<int32_t>(tensor.shape.size());
    for (size_t i = 0; i < tensor.shape.size() && i < 8; ++i) out.shape[i] = tensor.shape[i];
    return out;
}

// The chip of a request: nearly always that of the request before.
const Chip &chip_of(const Chip::Pairs &pairs) {
    static Chip::Pairs figures;
    static std::unique_ptr<Chip> chip;
    if (!chip || pairs != figures) {
        chip = std::make_unique<Chip>(pairs);
        figures = pairs;
    }
    return *chip;
}

ExecutorOptions options_for(const Request &request, const Chip &chip, const TensorMemory &memory) {
    ExecutorOptions options;
    options.compute = request.compute;
    options.poison = request.poison;
    options.auto_sync = request.auto_sync;
    options.work_limit *= request.effort;
    options.vector_cores = static_cast<uint32_t>(chip.vector_cores);
    options.cube_cores = static_cast<uint32_t>(chip.cube_cores);
    static constexpr TensorArg::Role roles[] = {TensorArg::Input, TensorArg::Output, TensorArg::Workspace};
    uint32_t outputs = 0;
    for (size_t i = 0; i < request.tensors.size(); ++i) {
        const TensorRequest &tensor = request.tensors[i];
        TensorArg argument{};
        argument.role = roles[tensor.role];
        argument.dtype = static_cast<uint8_t>(tensor.dtype);
        argument.bytes = tensor.bytes;
        if (tensor.role == TensorRequest::Output) {
            const auto &scratch = request.scratch;
            argument.kept = request.keep;
            argument.scratch = std::find(scratch.begin(), scratch.end(), outputs++) != scratch.end();
        }
        argument.data = memory.data(i);
        options.tensors.push_back(argument);
    }
    return options;
}

std::string fault_json(const DeviceFault &fault) {
    Object object;
    object.set("rule", fault.rule).set("message", fault.message);
    if (fault.line > 0) object.set("line", fault.line);
    else object.raw("line", "null");
    if (fault.core >= 0) object.set("core", fault.core);
    else object.raw("core", "null");
    return object.done();
}

}  // namespace

void Session::fill_call(const Chip &chip) {
    CallArguments &call = ring_.call;
    if (request_.tensors.size() > CallArguments::MAX_TENSORS || request_.ints.size() > CallArguments::MAX_SCALARS ||
        request_.floats.size() > CallArguments::MAX_SCALARS)
        throw std::runtime_error("more arguments than a kernel can be handed");
    call.budget = request_.budget;
    call.loops = request_.loops;
    call.cpu_seconds = static_cast<uint32_t>(request_.effort * (static_cast<uint64_t>(request_.timeout_ms) / 1000 + 2));
    const double platform[] = {chip.vector_cores, chip.cube_cores, chip.ub_bytes, chip.l1_bytes};
    for (int i = 0; i < 4; ++i) call.platform[i] = static_cast<uint64_t>(platform[i]);
    call.platform[4] = 0;
    call.num_inputs = call.num_outputs = 0;
    call.workspace_address = call.workspace_bytes = 0;
    for (size_t id = 0; id < request_.tensors.size(); ++id) {
        const TensorRequest &tensor = request_.tensors[id];
        const uint64_t address = ASC_GM_BASE + id * ASC_GM_STRIDE;
        if (tensor.role == TensorRequest::Workspace && call.workspace_address) {
            call.platform[4] = address;  // the second workspace is the framework's
            continue;
        }
        if (tensor.role == TensorRequest::Workspace) {
            call.workspace_address = address;
            call.workspace_bytes = tensor.bytes;
            continue;
        }
        if (tensor.role == TensorRequest::Input && call.num_outputs)
            throw std::runtime_error("inputs come first among the tensors of a call");
        call.tensors[call.num_inputs + call.num_outputs] = described(tensor, id);
        ++(tensor.role == TensorRequest::Input ? call.num_inputs : call.num_outputs);
    }
    call.num_ints = static_cast<uint32_t>(request_.ints.size());
    call.num_floats = static_cast<uint32_t>(request_.floats.size());
    std::copy(request_.ints.begin(), request_.ints.end(), call.ints);
    std::copy(request_.floats.begin(), request_.floats.end(), call.floats);
}

void Session::prepare_ring(const Chip &chip) {
    ring_.head = ring_.tail = ring_.words_tail = 0;
    ring_.device_sleeps = ring_.kernel_sleeps = ring_.kernel_asks = ring_.answers = ring_.stop = 0;
    std::memset(ring_.error, 0, sizeof ring_.error);
    std::memset(ring_.covered, 0, sizeof ring_.covered);
    price_code(chip);
    ring_.key = request_.key;
    std::memset(ring_.functions, 0, sizeof ring_.functions);
    for (const uint64_t where : request_.functions) ring_.functions[where / 64] |= 1ull << (where % 64);
    fill_call(chip);
}

// Prices of an earlier kernel stay where this one has no basic block.
void Session::price_code(const Chip &chip) {
    const auto &price = chip.scalar;
    for (const BlockOperations &block : request_.operations)
        ring_.cycles[block.where] =
            static_cast<uint32_t>(std::ceil(block.branches * price.block + block.integer * price.integer +
                                            block.floats * price.floats + block.divisions * price.division));
}

void Session::prepare_cache(const Chip &chip) {
    if (!request_.continues || !l2_) l2_ = std::make_unique<L2>(chip);
    l2_->name_tensors(request_.numbers);
}

bool Session::await_records() {
    for (int spin = 0; spin < kSpins; ++spin) {
        if (ring_.head.load(std::memory_order_acquire) != tail_) return true;
        pause_briefly();
    }
    ring_.device_sleeps.store(1);
    // The zygote sends its message before it wakes the device, so an ended kernel is either seen here or prevents the
    // sleep.
    if (ring_.head.load() == tail_ && !zygote_.ended(0)) sleep_while(&ring_.device_sleeps, 1);
    ring_.device_sleeps.store(0);
    return ring_.head.load() != tail_;
}

void Session::read_words(uint64_t *to, size_t count) {
    if (count > Ring::WORDS) throw DeviceFault{"PROTOCOL", "the ring was tampered with", 0, -1};
    for (size_t i = 0; i < count; ++i) to[i] = ring_.words[(words_tail_ + i) % Ring::WORDS];
    words_tail_ += count;
    ring_.words_tail.store(words_tail_, std::memory_order_release);
}

uint64_t Session::spent_in_loops(const Executor &executor) const {
    return executor.looped_accesses() * kAccessCost + executor.looped_blocks();
}

void Session::execute(Executor &executor, const Record &record) {
    const auto answer = [&](const auto &value) {
        static_assert(sizeof value <= sizeof ring_.answer);
        std::memcpy(&ring_.answer, &value, sizeof value);
        ring_.answers.store(++answers_);
        if (ring_.kernel_asks.exchange(0)) wake(&ring_.answers);
    };
    const auto answer_block = [&](asc_block block) {
        uint32_t dtype;  // the first argument of every read, already checked by the executor
        std::memcpy(&dtype, record.payload, sizeof dtype);
        answer(request_.compute ? block : synthetic_reads_.block(dtype));
    };
    switch (record.op) {
#include "dispatch.inc"
        default: throw DeviceFault{"PROTOCOL", "the kernel process sent what no kernel sends", record.line, -1};
    }
}

bool Session::drain(Executor &executor, End *end) {
    const uint64_t head = ring_.head.load(std::memory_order_acquire);
    if (head - tail_ > Ring::SLOTS) throw DeviceFault{"PROTOCOL", "the ring was tampered with", 0, -1};
    while (tail_ != head) {
        const Record record = ring_.records[tail_ % Ring::SLOTS];
        ring_.tail.store(++tail_, std::memory_order_release);
        // The host function takes no time on the device, so it cannot make a kernel one that is too slow to be timed.
        (executor.launched() ? spent_ : spent_by_host_) += cost_of(record.op) + record.code.blocks;
        if (record.line > 0) line_ = record.line;
        const uint64_t spent = spent_ + spent_in_loops(executor);
        if (std::max(spent, spent_by_host_) > request_.budget || record.op == OP_budget_spent) {
            *end = executor.launched() ? End::Budget : End::HostBudget;
            return true;
        }
        if (record.op == OP_strayed) throw strayed();
        if (record.op == OP_off_variables) throw off_variables();
        executor.plain_code(record.code);
        execute(executor, record);
        if (record.op == OP_returned) {
            *end = End::Returned;
            return true;
        }
        if (tail_ % 16 == 0) give_sign();
        if (tail_ % 512 == 0) {
            deadline_ = latest(request_);
            if (ring_.kernel_sleeps.load(std::memory_order_relaxed)) {
                ring_.kernel_sleeps.store(0);
                wake(&ring_.kernel_sleeps);
            }
        }
    }
    if (ring_.kernel_sleeps.load()) {
        ring_.kernel_sleeps.store(0);
        wake(&ring_.kernel_sleeps);
    }
    return false;
}

void Session::give_sign() {
    if (Clock::now() - said_ <= kSign) return;
    at_work_();
    said_ = Clock::now();
}

bool Session::silent() {
    const double now = zygote_.kernel_seconds();
    silence_ += std::min(now - looked_, kMostPerLook);
    looked_ = now;
    return silence_ > kSilence;
}

Session::End Session::follow(Executor &executor) {
    End end;
    double computed = 0;  // processor seconds of the kernel at the last extension of the deadline
    for (;;) {
        if (await_records()) {
            if (drain(executor, &end)) return end;
            silence_ = 0;
            deadline_ = latest(request_);
        } else if (zygote_.ended(0) && ring_.head.load() == tail_) {
            return End::Died;
        } else if (silent()) {
            return End::Silent;
        }
        if (Clock::now() > deadline_) {
            // A kernel that still computes is ended by silent(), however slowly the host runs it.
            const double now = zygote_.kernel_seconds();
            if (now - computed < kStirring) return End::Timeout;
            computed = now;
            deadline_ = latest(request_);
        }
    }
}

std::string Session::place() const {
    return line_ ? " (after the call in line " + std::to_string(line_) + ")" : " (before the first API call)";
}

DeviceFault Session::strayed() const {
    return {"BAD_POINTER",
            "kernel code followed a pointer to memory that is not its own" + place() +
                ": reach global memory through "
                "GlobalTensor and copies, on-chip memory through LocalTensor; large arrays do not fit the stack",
            0, -1};
}

DeviceFault Session::off_variables() const {
    return {"BAD_POINTER",
            "kernel code followed a pointer into its stack to where none of its variables is" + place() +
                ": the pointer lies before or behind the array or variable that it was made from",
            0, -1};
}

// Translates the end of the process into a fault. An end before the kernel's code was loaded is an error of the device;
// after that the process is the kernel's, and so is whatever status it ends with.
DeviceFault Session::death() const {
    const int status = zygote_.status();
    char error[sizeof ring_.error];
    std::memcpy(error, ring_.error, sizeof error);
    error[sizeof error - 1] = 0;
    if (!zygote_.entered()) throw std::runtime_error(std::string("the kernel process could not be confined: ") + error);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kernel_process::NOT_LOADED)
        return {"LOAD", std::string("the kernel could not be loaded: ") + error, 0, -1};
    const std::string after = place();
    if (WIFEXITED(status)) return {"CRASH", "the kernel process ended before kernel_launch returned" + after, 0, -1};
    switch (WTERMSIG(status)) {
        case SIGSYS:
            return {"FORBIDDEN_SYSCALL",
                    "kernel code made a system call" + after + ": a kernel computes and calls only the Ascend C API", 0,
                    -1};
        case SIGSEGV:
        case SIGBUS: return strayed();
        case SIGTRAP:  // where the compiler's check of an index ends the process
        case SIGILL:
            return {"BAD_POINTER",
                    "an index is beyond the end of its array, or a function ends without its value" + after, 0, -1};
        case SIGXCPU:  // the limit of processor time, which Linux enforces by SIGKILL if it cannot be raised
        case SIGKILL: return {"TIMEOUT", "the kernel used up its processor time" + after, 0, -1};
        default:
            return {"CRASH", "the kernel process died of signal " + std::to_string(WTERMSIG(status)) + after, 0, -1};
    }
}

std::string Session::covered_blocks() const {
    Array blocks;
    for (uint64_t word = 0; word < Ring::COVERED_BYTES / 64; ++word)
        for (uint64_t bits = ring_.covered[word]; bits; bits &= bits - 1)
            blocks.raw(std::to_string(word * 64 + static_cast<uint64_t>(__builtin_ctzll(bits))));
    return blocks.done();
}

std::string Session::run(int descriptor) {
    const Chip &chip = chip_of(request_.chip);
    zygote_.stop();
    const Code code(request_.code);
    const TensorMemory memory(request_, descriptor);
    prepare_cache(chip);
    Timeline timeline(chip, *l2_, [this] { give_sign(); });
    Outputs outputs(timeline, request_.trace, request_.log);
    ExecutorOptions options = options_for(request_, chip, memory);
    options.words = [this](uint64_t *to, size_t count) { read_words(to, count); };
    Executor executor(options, outputs.sink());
    prepare_ring(chip);
    deadline_ = latest(request_);
    zygote_.start(code.descriptor());

    Object reply;
    try {
        const End end = follow(executor);
        if (end == End::Died) throw death();
        if (end == End::Timeout)
            throw DeviceFault{"TIMEOUT",
                              "the kernel did nothing until the wall-clock limit: does it wait for something?", 0, -1};
        if (end == End::Silent)
            throw DeviceFault{"TIMEOUT", "the kernel computed for seconds without an API call: does a loop never end?",
                              0, -1};
        if (end == End::HostBudget)
            throw DeviceFault{"TIMEOUT", "the host function ran past the limit of instructions: does a loop never end?",
                              0, -1};
        if (end == End::Budget)
            throw DeviceFault{"BUDGET", "the kernel ran past the limit of instructions: does a loop never end?", 0, -1};
        reply.set("status", executor.code() == 0 ? "ok" : "refused").set("code", executor.code()).raw("fault", "null");
    } catch (const DeviceFault &fault) {
        const bool late = fault.rule == "TIMEOUT" || fault.rule == "BUDGET";
        if (fault.rule == "BUDGET" || fault.rule == "WORK_LIMIT") timeline.stop();
        reply.set("status", late ? "timeout" : "fault").set("code", 0).raw("fault", fault_json(fault));
    }
    ring_.stop = 1;
    wake(&ring_.stop);
    wake(&ring_.answers);
    zygote_.stop();
    outputs.finish();
    reply.raw("executor", executor.report_json()).raw("timing", timeline.report_json()).raw("blocks", covered_blocks());
    const uint64_t computed = static_cast<uint64_t>(executor.worked() * static_cast<double>(request_.budget));
    reply.set("spent", std::max(spent_ + spent_in_loops(executor), computed)).set("sent", tail_);
    return reply.done();
}

}  // namespace sim
