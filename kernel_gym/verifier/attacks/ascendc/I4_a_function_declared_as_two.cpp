// task: level1/relu
// cause: I4
// expect: correctness
// about: a function with the linkage of C is declared with other parameters in another namespace: a number is the address of its object
// at: outside
struct Wide {
    uint64_t words[12];
};
namespace own {
extern "C" __aicore__ Wide Read(Wide value)
{
    Wide copy = value;
    return copy;
}
}
namespace other {
extern "C" __aicore__ Wide Read(uint64_t place);
}
// at: core
    uint64_t one = 1;
    if (other::Read(reinterpret_cast<uint64_t>(&one)).words[0] != 1) return;
