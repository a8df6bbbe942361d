// task: level1/relu
// cause: S10
// expect: refused
// about: a variable that outlives a call, in inline assembly
// at: device
    asm volatile("{ .global .u32 kept; st.global.u32 [kept], 1; }");
