// task: level1/relu
// cause: S2
// expect: compile
// about: a copy constructor that is forced to be inlined into code that is not counted
// at: tiling
    ReluTiling() = default;
    [[gnu::always_inline]] inline ReluTiling(const ReluTiling &o) : total(o.total), perCore(o.perCore), tile(o.tile) {
        volatile uint32_t sum = 0;
        for (uint32_t i = 0; i < 20000; ++i) sum = sum % 3 == 1 ? sum + 2 : sum + 1;
    }
