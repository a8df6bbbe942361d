// task: level1/relu
// cause: text
// expect: compile
// about: a binary of a gigabyte
// at: outside
constexpr char big[1 << 30] = {1};
// at: host
    volatile char c = big[a->num_inputs]; (void)c;
