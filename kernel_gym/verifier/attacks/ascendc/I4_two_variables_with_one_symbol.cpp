// task: level1/relu
// cause: I4
// expect: no gain
// about: a table is declared as a larger one in another namespace, so that what lies behind it is read without a guard
// at: outside
struct Far {
    uint64_t words[100000];
};
inline const uint64_t Table[3] = {1, 2, 3};
__aicore__ inline uint64_t Use(uint32_t n) { return Table[n % 3]; }
namespace other {
extern "C" const Far Table;
}
// at: core
    if (Use(GetBlockIdx()) == 0) return;
    if (other::Table.words[700] == 12345) return;
