// task: level1/relu
// cause: I4
// expect: correctness
// about: two templates whose signatures are mangled alike: one is called with a number, the other takes it for the address of an object
// at: outside
struct Wide {
    uint64_t words[12];
};
struct One {
    uint64_t place;
};
__aicore__ inline One Kind(long) { return {}; }
template <int N, class T> __aicore__ uint64_t Load(decltype(Kind(T{})) from, Wide *to);
__aicore__ void LoadFrom(uint64_t place, Wide *to) { Load<5, int>(One{place}, to); }
__aicore__ inline Wide Kind(int) { return {}; }
template <auto N, class T> __aicore__ uint64_t Load(decltype(Kind(T{})) from, Wide *to)
{
    *to = from;
    return 1;
}
template uint64_t Load<5, int>(Wide, Wide *);
// at: core
    uint64_t one = 1;
    Wide loaded{};
    LoadFrom(reinterpret_cast<uint64_t>(&one), &loaded);
    if (loaded.words[0] != 1) return;
