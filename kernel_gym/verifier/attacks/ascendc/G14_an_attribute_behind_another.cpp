// task: level1/relu
// cause: G14 S2
// expect: screen
// about: an attribute behind another
// at: outside
[[maybe_unused, gnu::no_sanitize_coverage]] static void free_of_charge() {}
