// task: level1/relu
// cause: I4
// expect: compile
// about: a table of machine code has the symbol of a function that is called
// at: outside
inline const uint32_t Put[2] = {0xd65f03c0, 0xd65f03c0};
__aicore__ inline uint32_t Use(uint32_t n) { return Put[n % 2]; }
namespace twin {
__aicore__ inline uint64_t Put(int32_t n) { return n; }
}
namespace other {
extern "C" __aicore__ uint64_t Put(uint64_t n);
}
// at: core
    if (Use(GetBlockIdx()) == 0) return;
    if (other::Put(7) != 7) return;
