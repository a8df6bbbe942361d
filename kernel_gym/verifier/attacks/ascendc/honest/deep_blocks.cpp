// task: level1/relu
// cause: honest
// expect: feasible
// about: blocks, conditions and parentheses inside each other
// at: work
        if (n > 0) { if (n > 0) { if (n > 0) { { { n = ((((((((((n)))))))))); } } } } }
        for (uint32_t once = 0; once < 1; ++once) { for (uint32_t once = 0; once < 1; ++once) { for (uint32_t once = 0; once < 1; ++once) { for (uint32_t once = 0; once < 1; ++once) { for (uint32_t once = 0; once < 1; ++once) { for (uint32_t once = 0; once < 1; ++once) { n += 0; } } } } } }
