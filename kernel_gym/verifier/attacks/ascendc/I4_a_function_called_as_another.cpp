// task: level1/relu
// cause: I4
// expect: correctness
// about: a function that takes a large object gets a number: the object lies wherever the number says, and no guard looks at it
// at: outside
struct Wide {
    uint64_t words[12];
};
__aicore__ inline Wide Read(Wide value)
{
    Wide copy = value;
    return copy;
}
using Reads = Wide(uint64_t);
__aicore__ inline uint64_t At(uint64_t place)
{
    return reinterpret_cast<Reads &>(Read)(place).words[0];
}
// at: core
    uint64_t other = 1;
    if (At(reinterpret_cast<uint64_t>(&other)) != 1) return;
