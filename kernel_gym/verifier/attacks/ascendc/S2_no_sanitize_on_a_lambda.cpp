// task: level1/relu
// cause: S2
// expect: screen
// about: an attribute on a lambda
// at: outside
static uint32_t f(uint32_t n) { return [](uint32_t v) __attribute__((no_sanitize_coverage)) { return v; }(n); }
