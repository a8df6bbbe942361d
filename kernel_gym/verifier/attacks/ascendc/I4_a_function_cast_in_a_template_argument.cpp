// task: level1/relu
// cause: I4
// expect: correctness
// about: the argument of a template is a function that is cast, and the call is hidden by comparisons
// at: outside
struct Wide {
    uint64_t words[12];
};
using OfNumber = uint64_t (*)(uint64_t);
__aicore__ uint64_t First(Wide value) { return value.words[0]; }
template <auto F> inline const OfNumber first = reinterpret_cast<OfNumber>(reinterpret_cast<uint64_t>(F));
// at: core
    uint64_t one = 1;
    const uint32_t block = GetBlockIdx();
    bool none = (first<First>(reinterpret_cast<uint64_t>(&one)) > 2) & (block > 0);
    if (none) return;
