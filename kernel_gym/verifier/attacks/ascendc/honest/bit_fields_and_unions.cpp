// task: level1/relu
// cause: honest
// expect: feasible
// about: bit fields, and a union on the stack
// at: outside
struct Flags { uint32_t tail : 1; uint32_t cores : 6; uint32_t : 0; };
// at: host
    Flags flags{1, 40};
    union { uint32_t bits; float value; } pun;
    pun.value = 1.0f;
    total += flags.tail - 1 + (pun.bits >> 31);
