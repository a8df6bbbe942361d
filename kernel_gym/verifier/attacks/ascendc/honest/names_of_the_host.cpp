// task: level1/relu
// cause: honest
// expect: feasible
// about: names that host functions have, for other things
// at: outside
struct Clock { uint32_t time, read, write; __aicore__ inline uint32_t open() { return time + read + write; } };
__aicore__ inline uint32_t signal(uint32_t wait) { return wait; }
struct Watch { __aicore__ inline uint32_t operator()(uint32_t a) const { return a; } };
template <class F> __aicore__ inline uint32_t Each(F read) { return read(0u); }
// at: work
        auto write = [&](uint32_t i) { n += i; };
        write(0);
        const Watch time{};
        n += time(0) + Each([](uint32_t select) { return select; });
        Clock clock{0, 0, 0};
        uint32_t random = clock.open(), system_size = signal(random), assembly = system_size;
        n += assembly;
