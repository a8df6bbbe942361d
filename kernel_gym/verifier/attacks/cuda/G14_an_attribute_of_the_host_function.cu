// task: level1/relu
// cause: S2 G14
// expect: screen
// about: an attribute that moves code of the host half into a section of its own
// at: outside
__attribute__((unused, section(".data.code"))) static int helper(int n) { return n; }
// at: host
    if (helper(1) != 1) return 1;
