// task: level1/relu
// cause: honest
// expect: feasible
// about: names that host functions have, for other things
// at: outside
struct Clock { uint32_t time, read, write; __aicore__ inline uint32_t open() { return time + read + write; } };
__aicore__ inline uint32_t signal(uint32_t wait) { return wait; }
// at: work
        Clock clock{0, 0, 0};
        uint32_t random = clock.open(), system_size = signal(random), assembly = system_size;
        n += assembly;
