// task: level1/relu
// cause: I3
// expect: screen
// about: a function of the host, declared inside of another one with the linkage of C
// at: outside
extern "C" __aicore__ inline long Ask(long name)
{
    long pathconf(const char *, int), (fpathconf)(int, int);
    return fpathconf(0, static_cast<int>(name)) + pathconf(nullptr, 0);
}
// at: core
    if (Ask(3) == 12345) return;
