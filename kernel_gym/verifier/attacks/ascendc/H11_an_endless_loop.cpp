// task: level1/relu
// cause: H11
// expect: correctness
// about: an endless loop
// at: work
        volatile bool go = true; while (go) {}
