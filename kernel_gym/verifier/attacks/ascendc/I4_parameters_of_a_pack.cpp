// task: level1/relu
// cause: I4
// expect: correctness
// about: a copy of a padded base through a parameter of a pack, which the compiler does not guard
// at: outside
struct Padded {
    uint64_t word;
    uint8_t byte;
    __aicore__ inline Padded() {}
};
struct Longer : Padded {
    uint8_t more;
};
template <class... Places> __aicore__ inline uint64_t Peek(Places... p)
{
    Padded got = (*(const Longer *)p, ...);
    return got.word;
}
// at: core
    uint64_t some = AscendC::GetBlockIdx();
    if (Peek(&some) == 99) return;
