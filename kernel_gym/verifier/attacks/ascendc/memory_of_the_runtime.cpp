// task: level1/relu
// cause: process
// expect: correctness
// about: memory of the runtime
// at: host
    union { uint64_t number; uint64_t *pointer; } bent; uint64_t own = 0; bent.pointer = &own; bent.number -= 1ull << 32; *bent.pointer = 0;
