// task: level1/relu
// cause: I4
// expect: compile
// about: reads the stack behind an array with a constant index
// at: work
        int32_t own[4] = {1, 2, 3, 4};
        if (own[7] == 2) return;
