// task: level1/relu
// cause: I6
// expect: compile
// about: maths of the host
// at: work
        float e = expf(1.0f);
