// task: level1/relu
// cause: I4
// expect: correctness
// about: a function is called as one with a smaller result, so that it writes its own to where an earlier call did
// at: outside
struct Three {
    uint64_t words[3];
};
struct Two {
    uint64_t words[2];
};
__aicore__ inline Three Fill(uint64_t value)
{
    Three filled = {{value, value, value}};
    return filled;
}
using Fills = Two(uint64_t);
using Pointer = Fills *;
inline const Pointer fill = reinterpret_cast<Pointer>(reinterpret_cast<uint64_t>(&Fill));
// at: core
    if (fill(1).words[0] == 2) return;
