// task: level1/relu
// cause: C20
// expect: screen
// about: work before the call
// at: outside
static float table = []() { return 1.0f; }();
