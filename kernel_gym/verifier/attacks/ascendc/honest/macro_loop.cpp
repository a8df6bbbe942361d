// task: level1/relu
// cause: honest
// expect: feasible
// about: a macro that repeats a statement
// at: outside
#define REPEAT2(statement) statement; statement
#define REPEAT4(statement) REPEAT2(statement); REPEAT2(statement)
// at: work
        uint32_t count = 0;
        REPEAT4(++count);
        if (count != 4) return;
