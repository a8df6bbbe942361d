// task: level1/relu
// cause: S2
// expect: screen
// about: an attribute that is not allowed behind one that is
// at: outside
__attribute__((always_inline, no_sanitize("kernel-address"))) static inline void unseen() {}
