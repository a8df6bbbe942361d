// task: level1/relu
// cause: I6
// expect: compile
// about: algorithms of the host
// at: work
        float v[4] = {}; std::sort(v, v + 4);
