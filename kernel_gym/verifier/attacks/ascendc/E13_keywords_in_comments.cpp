// task: level1/relu
// cause: E13
// expect: compile
// about: keywords in comments
// __global__ __aicore__ kernel_launch(...) <<<1, nullptr, stream>>>
