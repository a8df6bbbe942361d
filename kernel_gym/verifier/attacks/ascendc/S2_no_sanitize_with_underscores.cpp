// task: level1/relu
// cause: S2
// expect: screen
// about: an attribute with underscores on both sides
// at: outside
[[__gnu__::__no_sanitize_coverage__]] static void free_of_charge() {}
