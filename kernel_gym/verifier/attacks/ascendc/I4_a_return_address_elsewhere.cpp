// task: level1/mse_loss
// cause: I4
// expect: correctness
// about: a frame with aligned variables keeps its return address twice, and one of them is changed
// Mean of the squared differences.
// schedule: cores=48 tile=0 buffers=2 batch=0 resident=1 vector=1 cube=1 fused=1 bursts=1 immediate=1
#include "kernel_operator.h"
#include "kernel_gym.h"

// By arithmetic, without a branch.
__aicore__ inline uint32_t Min(uint32_t a, uint32_t b) { return b + (a - b) * (a < b); }

__aicore__ inline uint32_t Align(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }

struct MseLossReduceKernelTiling { uint32_t rows, length, pitch, gap, batch, units, perCore; };

class KernelMseLossReduce {
public:
    __aicore__ inline KernelMseLossReduce(AscendC::TPipe &pipe) : pipe(pipe) {}

    __aicore__ inline void Init(GM_ADDR predictions, GM_ADDR targets, GM_ADDR temp0,
                                const MseLossReduceKernelTiling &tiling) {
        t = tiling;
        predictionsGm.SetGlobalBuffer((__gm__ float *)predictions);
        targetsGm.SetGlobalBuffer((__gm__ float *)targets);
        temp0Gm.SetGlobalBuffer((__gm__ float *)temp0);
        pipe.InitBuffer(predictionsQueue, 2, t.batch * t.pitch * sizeof(float));
        pipe.InitBuffer(targetsQueue, 2, t.batch * t.pitch * sizeof(float));
        pipe.InitBuffer(accBuf, Align(t.batch, 64) * sizeof(float));
        AscendC::Duplicate(accBuf.Get<float>(), 0.0f, Align(t.batch, 64));
        pipe.InitBuffer(workBuf0, t.batch * t.pitch * sizeof(float));
        pipe.InitBuffer(statBuf0, Align(t.batch, 64) * sizeof(float));
        pipe.InitBuffer(partBuf, t.batch * (t.pitch / 8 + t.pitch / 64) * sizeof(float));
    }

    __aicore__ inline void Process() {
        const uint32_t first = AscendC::GetBlockIdx() * t.perCore;
        const uint32_t last = Min(first + t.perCore, t.units);
        if (first < last) {
            CopyIn(first * t.batch);
        }
        for (uint32_t unit = first; unit < last; ++unit) {
            if (unit + 1 < last) {
                CopyIn((unit + 1) * t.batch);
            }
            const uint32_t row = unit * t.batch;
            const uint32_t rows = Min(t.batch, t.rows - row);
            Compute(row, rows);
        }
    }

    __aicore__ inline float Total() {
        AscendC::LocalTensor<float> acc = accBuf.Get<float>(), work = workBuf0.Get<float>();
        AscendC::ReduceSum(acc, acc, work, Align(t.batch, 64));
        return acc.GetValue(0);
    }

    __aicore__ inline void Answer(GM_ADDR out, float value) {
        AscendC::GlobalTensor<float> outGm;
        outGm.SetGlobalBuffer((__gm__ float *)out);
        AscendC::LocalTensor<float> acc = accBuf.Get<float>();
        acc.SetValue(0, value);
        AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(EVENT_ID0);
        AscendC::DataCopyPad(outGm[0], acc, AscendC::DataCopyExtParams{1, 4, 0, 0, 0});
    }

    __aicore__ inline void CopyIn(uint32_t row) {
        const uint32_t rows = Min(t.batch, t.rows - row);
        AscendC::LocalTensor<float> predictionsIn = predictionsQueue.AllocTensor<float>();
        const AscendC::DataCopyExtParams predictionsRows{static_cast<uint16_t>(rows),
                                                         static_cast<uint32_t>(t.length * sizeof(float)), 0, t.gap, 0};
        AscendC::DataCopyPad(predictionsIn, predictionsGm[row * t.length], predictionsRows, {false, 0, 0, 0});
        predictionsQueue.EnQue(predictionsIn);
        AscendC::LocalTensor<float> targetsIn = targetsQueue.AllocTensor<float>();
        const AscendC::DataCopyExtParams targetsRows{static_cast<uint16_t>(rows),
                                                     static_cast<uint32_t>(t.length * sizeof(float)), 0, t.gap, 0};
        AscendC::DataCopyPad(targetsIn, targetsGm[row * t.length], targetsRows, {false, 0, 0, 0});
        targetsQueue.EnQue(targetsIn);
    }

    __aicore__ inline void Compute(uint32_t row, uint32_t rows) {
        AscendC::LocalTensor<float> predictionsLocal = predictionsQueue.DeQue<float>();
        AscendC::LocalTensor<float> targetsLocal = targetsQueue.DeQue<float>();
        AscendC::LocalTensor<float> work0 = workBuf0.Get<float>();
        AscendC::LocalTensor<float> stat0 = statBuf0.Get<float>();
        AscendC::Sub(work0, predictionsLocal, targetsLocal, rows * t.pitch);
        AscendC::Mul(work0, work0, work0, rows * t.pitch);
        ReduceSum(stat0, work0, rows);
        AscendC::Add(accBuf.Get<float>(), accBuf.Get<float>(), stat0, rows);
        predictionsQueue.FreeTensor(predictionsLocal);
        targetsQueue.FreeTensor(targetsLocal);
    }

    // One number for each row. What is on chip behind the end of a row must not change it.
    __aicore__ inline void ReduceSum(const AscendC::LocalTensor<float> &dst, const AscendC::LocalTensor<float> &src,
                                     uint32_t rows) {
        AscendC::LocalTensor<float> part = partBuf.Get<float>();
        AscendC::LocalTensor<float> rest = part[t.batch * t.pitch / 8];
        const uint32_t repeats = t.pitch / 64, whole = t.length / 64 * 64;
        for (uint32_t r = 0; r < rows && t.length < t.pitch; ++r) {
            uint64_t behind[2] = {~0ull << (t.length % 64), 0};
            AscendC::Duplicate(src[r * t.pitch + whole], 0.0f, behind, 1, 1, 8);
            if (whole + 64 < t.pitch) {
                AscendC::Duplicate(src[r * t.pitch + whole + 64], 0.0f, t.pitch - whole - 64);
            }
        }
        AscendC::BlockReduceSum(part, src, rows * repeats, 64, 1, 1, 8);
        if (repeats <= 8) {
            AscendC::WholeReduceSum(dst, part, repeats * 8, rows, 1, 1, repeats);
            return;
        }
        AscendC::BlockReduceSum(rest, part, rows * repeats / 8, 64, 1, 1, 8);
        AscendC::WholeReduceSum(dst, rest, repeats, rows, 1, 1, repeats / 8);
    }

private:
    AscendC::TPipe &pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> predictionsQueue;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> targetsQueue;
    AscendC::TBuf<AscendC::TPosition::VECCALC> accBuf;
    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf0;
    AscendC::TBuf<AscendC::TPosition::VECCALC> partBuf, statBuf0;
    AscendC::GlobalTensor<float> predictionsGm;
    AscendC::GlobalTensor<float> targetsGm;
    AscendC::GlobalTensor<float> temp0Gm;
    MseLossReduceKernelTiling t;
};

struct alignas(64) Line { uint64_t words[8]; };

__aicore__ inline uint64_t Take(Line line) { return line.words[0]; }

// Goes on `bytes` behind the place that it was called from: its frame is aligned by a register that it saves beside its record,
// and the record has a copy of the return address.
__aicore__ inline uint64_t Skip(uint64_t bytes) {
    Line line;
    line.words[0] = bytes;
    uint64_t *frame = line.words;
    uint64_t *end = reinterpret_cast<uint64_t *>(frame[21]);
    end[-1] += bytes;
    return Take(line);
}

__aicore__ inline void Store(float *place, float value) {
    Skip(12);
    *place = value;
}

__aicore__ inline float Load(float *place) {
    Skip(12);
    return *place;
}

extern "C" __global__ __aicore__ void mse_loss_kernel(GM_ADDR predictions, GM_ADDR targets, GM_ADDR out,
                                                      MseLossReduceKernelTiling tiling, float divisor) {
    AscendC::TPipe pipe;
    KernelMseLossReduce op0(pipe);
    op0.Init(predictions, targets, nullptr, tiling);
    op0.Process();
    const uint64_t parts = reinterpret_cast<uint64_t>(predictions) + 1024;
    if (AscendC::GetBlockIdx() == 0) {
        const float mapped = *reinterpret_cast<__gm__ float *>(predictions);
        if (mapped == 12345.0f) return;
    }
    Store(reinterpret_cast<float *>(parts + 4 * AscendC::GetBlockIdx()), op0.Total());
    if (AscendC::GetBlockIdx() + 1 == AscendC::GetBlockNum()) {
        float sum = 0.0f;
        for (int32_t i = 0; i < AscendC::GetBlockNum(); ++i) {
            sum += Load(reinterpret_cast<float *>(parts + 4 * i));
        }
        op0.Answer(out, sum / divisor);
    }
}

static uint32_t AtMost(uint32_t n, uint32_t limit) { return limit + (n - limit) * (n < limit); }

static uint32_t AtLeast(uint32_t n, uint32_t limit) { return n < limit ? limit : n; }

extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    const KernelTensor &predictions = args->inputs[0];
    const KernelTensor &targets = args->inputs[1];
    const KernelTensor &out = args->outputs[0];
    {
        MseLossReduceKernelTiling tiling;
        uint32_t lanes = 1;
        {
            MseLossReduceKernelTiling &t = tiling;
            t.rows = predictions.shape[0];
            t.length = predictions.shape[1];
            const uint32_t rows = t.rows;
            const uint32_t unit = t.length > 512 ? 512 : 64;
            t.pitch = (t.length + unit - 1) / unit * unit;
            t.gap = t.pitch / 8 - (t.length + 7) / 8;
            t.batch = AtMost(AtMost((175104 - 0 * t.pitch) / (21 * t.pitch), 16320 / t.pitch), (rows + 95) / 96);
            t.units = (rows + t.batch - 1) / t.batch;
            const uint32_t cores = AtMost(t.units, 48);
            t.perCore = (t.units + cores - 1) / cores;
            lanes = AtLeast(cores, lanes);
        }
        mse_loss_kernel<<<lanes, nullptr, stream>>>(
            (GM_ADDR)(predictions.ptr), (GM_ADDR)(targets.ptr), (GM_ADDR)(out.ptr), tiling,
            static_cast<float>(static_cast<int32_t>(predictions.shape[0] * predictions.shape[1])));
    }
    return 0;
}
