// task: level1/relu
// cause: C13
// expect: screen
// about: answers kept between calls
// at: host
    static float answers[4096];
