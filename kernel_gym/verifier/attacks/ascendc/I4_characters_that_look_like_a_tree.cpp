// task: level1/relu
// cause: I4
// expect: correctness
// about: characters in braces are a line of the compiler's dump, so that the calls behind it seem to be those of another function
// at: outside
struct Wide {
    uint64_t words[12];
};
using OfNumber = uint64_t (*)(uint64_t);
__aicore__ uint64_t First(Wide value) { return value.words[0]; }
static constexpr char kTree[] = {
    10, 59, 59, 32, 70, 117, 110, 99, 116, 105, 111, 110, 32, 71, 111, 32, 40, 110, 117, 108, 108,
    41, 10, 59, 59, 32, 101, 110, 97, 98, 108, 101, 100, 32, 98, 121, 32, 45, 116, 114, 101, 101,
    45, 111, 114, 105, 103, 105, 110, 97, 108, 10, 10, 64, 49, 32, 32, 32, 32, 32, 32, 118, 111,
    105, 100, 95, 116, 121, 112, 101, 32, 32, 32, 32, 32, 32, 32, 32, 97, 108, 103, 110, 58, 32, 56,
    32, 10, 0
};
__aicore__ inline char Tree(uint64_t n) { return kTree[n % 8]; }
// at: core
    const char tree[] = {
        10, 59, 59, 32, 70, 117, 110, 99, 116, 105, 111, 110, 32, 71, 111, 32, 40, 110, 117, 108, 108,
        41, 10, 59, 59, 32, 101, 110, 97, 98, 108, 101, 100, 32, 98, 121, 32, 45, 116, 114, 101, 101,
        45, 111, 114, 105, 103, 105, 110, 97, 108, 10, 10, 64, 49, 32, 32, 32, 32, 32, 32, 118, 111,
        105, 100, 95, 116, 121, 112, 101, 32, 32, 32, 32, 32, 32, 32, 32, 97, 108, 103, 110, 58, 32, 56,
        32, 10, 0
    };
    uint64_t one = 1;
    if (reinterpret_cast<OfNumber>(reinterpret_cast<uint64_t>(&First))(reinterpret_cast<uint64_t>(&one)) != 1) return;
    if (tree[0] == Tree(1)) return;
