// task: level1/relu
// cause: D4
// expect: screen
// about: replay of a global buffer
// at: outside
float replay[1 << 16];
