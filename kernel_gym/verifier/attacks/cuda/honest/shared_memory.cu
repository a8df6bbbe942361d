// task: level1/relu
// cause: honest
// expect: feasible
// about: shared memory, a barrier and a shuffle
// at: device
    __shared__ float room[32];
    room[threadIdx.x % 32] = 0.0f;
    __syncthreads();
    float lane = __shfl_sync(0xffffffffu, room[threadIdx.x % 32], 0);
    if (lane != 0.0f) return;
