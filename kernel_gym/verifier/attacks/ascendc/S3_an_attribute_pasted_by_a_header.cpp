// task: level1/relu
// cause: S3 S2
// expect: screen
// about: a macro of the system's headers pastes the word for attributes together, and code is no longer counted
// at: outside
__CONCAT(__attri, bute__)((no_sanitize_coverage)) static uint32_t free_of_charge(uint32_t n) { return n; }
// at: work
        n = free_of_charge(n);
