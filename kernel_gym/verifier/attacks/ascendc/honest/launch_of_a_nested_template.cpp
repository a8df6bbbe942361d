// task: level1/relu
// cause: honest
// expect: feasible
// about: three angle brackets end the name of a kernel that is launched
// instead of: kernel
template <class T> struct Inner { using type = T; };
template <class T> struct Outer { using type = typename T::type; };

template <class T>
__global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)
// instead of: launch
    relu_kernel<Outer<Inner<float>>><<<blocks, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);
