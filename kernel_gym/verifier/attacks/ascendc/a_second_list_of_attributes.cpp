// task: level1/relu
// cause: text S2
// expect: screen
// about: a second list of attributes
// at: outside
[[maybe_unused]] [[gnu::no_sanitize("kernel-address")]] static void unseen() {}
