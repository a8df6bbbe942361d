// task: level1/relu
// cause: I4
// expect: correctness
// about: a variable template casts a function that is an argument of a template with a comparison in its arguments
// at: outside
struct Wide {
    uint64_t words[12];
};
template <bool>
__aicore__ Wide Read(Wide value)
{
    Wide copy = value;
    return copy;
}
using Reads = Wide(uint64_t);
using Pointer = Reads *;
template <auto F, class T>
inline const T called = reinterpret_cast<T>(reinterpret_cast<uint64_t>(F));
// at: core
    uint64_t other = 1;
    if (called<Read<1<2>, Pointer>(reinterpret_cast<uint64_t>(&other)).words[0] != 1) return;
