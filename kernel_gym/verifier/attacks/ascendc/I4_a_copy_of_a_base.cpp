// task: level1/relu
// cause: I4
// expect: correctness
// about: a base class whose padding the derived class uses is copied through a pointer: the compiler calls no guard for it
// at: outside
struct Padded {
    uint64_t word;
    uint8_t byte;
    __aicore__ inline Padded() {}
};
struct Holder : Padded {
    uint8_t more;
};
__aicore__ inline uint64_t Peek(uint64_t place)
{
    Padded got = *reinterpret_cast<const Holder *>(place);
    return got.word;
}

// at: core
    uint64_t other = 1;
    if (Peek(reinterpret_cast<uint64_t>(&other)) != 1) return;
