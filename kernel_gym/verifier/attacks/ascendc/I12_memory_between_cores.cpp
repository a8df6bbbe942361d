// task: level1/relu
// cause: I12
// expect: screen
// about: memory between cores
// at: work
        static int shared = 0; shared++;
