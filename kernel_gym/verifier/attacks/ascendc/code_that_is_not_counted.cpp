// task: level1/relu
// cause: text S2
// expect: screen
// about: code that is not counted
// at: outside
[[gnu::no_sanitize_coverage]] void free_of_charge() {}
