// task: level1/relu
// cause: text S4
// expect: screen
// about: a static in a lambda
// at: host
    auto f = []() { static int n = 0; return ++n; }; if (f() > 1) return 0;
