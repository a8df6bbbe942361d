// task: level1/relu
// cause: S8
// expect: no gain
// about: kernels without a body
// at: end x 50000
__global__ 
