// task: level1/relu
// cause: S2
// expect: screen
// about: a second name for a function of the runtime
// at: outside
__attribute__((unused, alias("kernel_launch"))) int other(const KernelArgs *, void *);
