// task: level1/relu
// cause: honest
// expect: feasible
// about: volatile, references and pointers to locals
// at: work
        volatile uint32_t kept = n;
        uint32_t &alias = n;
        uint32_t *pointer = &alias;
        *pointer = kept;
