// task: level1/relu
// cause: I7
// expect: screen
// about: global arrays as memory
// at: outside
static float scratch[1 << 20];
