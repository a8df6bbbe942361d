// task: level1/relu
// cause: honest
// expect: feasible
// about: the name of a kernel and the kind of its cores are macros; two vector cores run each block
// instead of: kernel
#define KERNEL_NAME relu_kernel
#define CORES KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2)
#define KERNEL extern "C" __global__ __aicore__
KERNEL void KERNEL_NAME(GM_ADDR x, GM_ADDR y, ReluTiling t)
// at: core
    CORES;
// instead of: launch
    relu_kernel<<<(blocks + 1) / 2, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);
