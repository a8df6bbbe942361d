// task: level1/relu
// cause: S7
// expect: no gain
// about: the copy out takes the larger of result and zero, so that no vector instruction is needed
// instead of: work
        AscendC::Duplicate(y, 0.0f, n);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::DataCopyExtParams zeros{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[done], y, zeros);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::Adds(y, x, 0.0f, n);
// at: output
        done = 0;
// instead of: copy_out
        AscendC::SetAtomicMax<float>();
        AscendC::DataCopyPad(yGm[offset], y, copy);
        AscendC::SetAtomicNone();
        done = offset + tile;
// instead of: outside
struct Progress { uint32_t done = 0; };
class KernelRelu : public Progress {
