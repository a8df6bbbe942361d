// task: level1/relu
// cause: I4
// expect: no gain
// about: comparisons joined by & hide a call of a function that was cast from the trees of the compiler
// at: outside
struct Wide {
    uint64_t words[12];
};
__aicore__ uint64_t First(Wide value)
{
    return value.words[0];
}
using Of = uint64_t(uint64_t);
using Pointer = Of *;
inline const Pointer first = reinterpret_cast<Pointer>(reinterpret_cast<uint64_t>(&First));
// at: core
    uint64_t other = 1;
    const bool both = (first(reinterpret_cast<uint64_t>(&other)) > 2) & (other > 3);
    if (both) return;
