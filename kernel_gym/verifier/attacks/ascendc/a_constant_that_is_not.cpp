// task: level1/relu
// cause: text
// expect: feasible
// about: a constant that is not
// at: outside
static const int value = []() { return 3; }();
