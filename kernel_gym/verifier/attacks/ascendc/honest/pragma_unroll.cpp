// task: level1/relu
// cause: honest
// expect: feasible
// about: a pragma for the loop
// at: host
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) total += 0;
