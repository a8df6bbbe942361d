// task: level1/relu
// cause: I4
// expect: correctness
// about: a function that takes a large object gets a small one, which is passed as a number
// at: outside
struct Wide {
    uint64_t words[12];
};
__aicore__ inline Wide Read(Wide value)
{
    Wide copy = value;
    return copy;
}
struct Word {
    uint64_t value;
};
using Reads = Wide(Word);
using Pointer = Reads *;
struct Box {
    static inline const Pointer read = reinterpret_cast<Pointer>(reinterpret_cast<uint64_t>(&Read));
};
__aicore__ inline uint64_t At(uint64_t place)
{
    const Word word = {place};
    return Box::read(word).words[0];
}
// at: core
    uint64_t other = 1;
    if (At(reinterpret_cast<uint64_t>(&other)) != 1) return;
