// task: level1/relu
// cause: I4
// expect: correctness
// about: a constant of a class, a cast pointer to a function, is called: nothing of it is left in the binary
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
using Pointer = Reads *;
struct Box {
    static inline const Pointer read = reinterpret_cast<Pointer>(reinterpret_cast<uint64_t>(&Read));
};
__aicore__ inline uint64_t At(uint64_t place)
{
    return Box::read(place).words[0];
}
// at: core
    uint64_t other = 1;
    if (At(reinterpret_cast<uint64_t>(&other)) != 1) return;
