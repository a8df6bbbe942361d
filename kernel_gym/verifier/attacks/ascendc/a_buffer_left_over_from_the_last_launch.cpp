// task: level1/relu
// cause: memory
// expect: correctness
// about: the second launch computes on what the first has left in on-chip memory
// at: tiling
    uint32_t turn;
// instead of: outside
struct Turn { uint32_t skip = 0; };
class KernelRelu : public Turn {
// instead of: copy_in
        if (skip == 0) AscendC::DataCopyPad(x, xGm[offset], copy, pad);
// at: start
        const uint32_t turn = t.turn;
        skip = turn;
// instead of: launch
    t.turn = 0;
    relu_kernel<<<blocks, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->workspace, t);
    t.turn = 1;
    relu_kernel<<<blocks, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);
// at: output
        static_assert(sizeof(ReluTiling) == 16, "one field more");
