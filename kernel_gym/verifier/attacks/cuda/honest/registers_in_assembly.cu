// task: level1/relu
// cause: honest
// expect: feasible
// about: inline assembly with registers, a predicate, a label and a vector of its own
// at: device
    unsigned kept = 1;
    asm volatile("{\n\t.reg .pred p;\n\t.reg .b32 r0, %%mine;\n\tmov.b32 r0, %0;\n\tsetp.ne.u32 p, r0, 0;\n\t@p bra DONE_%=;\n\tmov.b32 %%mine, r0;\nDONE_%=:\n\tadd.u32 %0, r0, 0;\n}" : "+r"(kept));
    if (kept == 0) return;
