// task: level1/relu
// cause: honest
// expect: feasible
// about: volatile, references and pointers to locals, a reference to the result of a function
// at: work
        volatile uint32_t kept = n;
        uint32_t &alias = n;
        uint32_t *pointer = &alias;
        *pointer = kept;
        const auto &index = AscendC::GetBlockIdx();
        if (index > 1000) { return; }
