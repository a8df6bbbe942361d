// task: level1/relu
// cause: I4
// expect: compile
// about: a constant pointer to a function, cast by way of a number, is called: the compiler calls the function itself
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
__aicore__ inline uint64_t At(uint64_t place)
{
    const Pointer read = reinterpret_cast<Pointer>(reinterpret_cast<uint64_t>(&Read));
    return read(place).words[0];
}
// at: core
    uint64_t other = 1;
    if (At(reinterpret_cast<uint64_t>(&other)) != 1) return;
