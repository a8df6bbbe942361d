// task: level1/relu
// cause: text S2
// expect: screen
// about: a second attribute of a vendor
// at: outside
[[using gnu: unused, naked]] static void bare() {}
