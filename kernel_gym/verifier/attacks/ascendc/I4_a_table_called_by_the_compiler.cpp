// task: level1/relu
// cause: I4
// expect: compile
// about: a table of machine code has the name of a function that the compiler calls to clear an object
// at: outside
struct Large {
    uint64_t words[4096];
};
inline const uint32_t memset[2] = {0xd65f03c0, 0xd65f03c0};
__aicore__ inline uint32_t Use(uint32_t n) { return memset[n % 2]; }
// at: core
    if (Use(GetBlockIdx()) == 0) return;
    Large large{};
    if (large.words[GetBlockIdx()] != 0) return;
