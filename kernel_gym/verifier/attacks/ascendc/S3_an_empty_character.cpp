// task: level1/relu
// cause: S3
// expect: screen
// about: two quotes are a whole token for the compiler, which a macro of the headers drops, and hide nothing behind them
// at: work
        ascendc_assert(true, ''); asm volatile("nop");
