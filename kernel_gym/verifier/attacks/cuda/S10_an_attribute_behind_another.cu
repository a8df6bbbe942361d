// task: level1/relu
// cause: S2 S10
// expect: refused
// about: an attribute that is not allowed behind one that is
// at: outside
[[maybe_unused, gnu::constructor]] static void early() {}
