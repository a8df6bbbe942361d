// task: level1/relu
// cause: H13 C2
// expect: screen
// about: the host function makes a system call by inline assembly that a macro spells
// at: outside
#define WORD __asm__
// at: host
    WORD volatile("nop");
