// task: level1/relu
// cause: S2
// expect: screen
// about: a function that runs after the kernel
// at: outside
[[maybe_unused, gnu::destructor]] static void late() {}
