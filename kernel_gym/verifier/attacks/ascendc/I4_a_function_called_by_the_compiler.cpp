// task: level1/relu
// cause: I4
// expect: compile
// about: a function that the compiler calls to convert a number is defined with an object as its parameter
// at: outside
struct Wide {
    uint64_t words[12];
};
using Real = decltype(1.0L);
extern "C" __aicore__ Real __floatunditf(Wide value)
{
    Wide copy = value;
    copy.words[7] = copy.words[8];
    value = copy;
    return Real();
}
// at: core
    uint64_t words[12] = {1};
    Real none = reinterpret_cast<uint64_t>(&words[0]);
    (void)none;
