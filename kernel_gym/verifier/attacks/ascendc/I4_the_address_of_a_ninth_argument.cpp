// task: level1/relu
// cause: I4
// expect: correctness
// about: changes the hidden address of a large object that is the ninth argument and lies on the stack, to write elsewhere
// at: outside
struct Wide {
    uint64_t words[12];
};
// On x86-64 the object itself lies there, and the word is the return address.
__aicore__ inline uint64_t Last(uint64_t place, int, int, int, int, int, int, int, Wide wide)
{
    uint64_t here = 0;
    uint64_t *stack = &here;
    stack[2] = place;
    wide = Wide{};
    return here;
}
// at: core
    Wide other{};
    other.words[0] = Last(reinterpret_cast<uint64_t>(&other), 2, 3, 4, 5, 6, 7, 8, other);
