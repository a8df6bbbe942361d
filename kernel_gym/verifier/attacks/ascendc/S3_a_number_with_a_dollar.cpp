// task: level1/relu
// cause: S3
// expect: screen
// about: a dollar goes on with a number for the compiler, so that the quote behind it separates digits and opens nothing
// at: work
        ascendc_assert(true, 1$'a); asm volatile("nop"); //'
