// task: level1/relu
// cause: text S2
// expect: screen
// about: accesses that are not seen
// at: outside
[[gnu::no_sanitize("kernel-address")]] void unseen() {}
