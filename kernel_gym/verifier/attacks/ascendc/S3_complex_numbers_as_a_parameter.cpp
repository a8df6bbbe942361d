// task: level1/relu
// cause: S3
// expect: screen
// about: complex numbers, which no guard watches, by a word that looks like the name of a parameter
// at: outside
__aicore__ inline void Unused(float __complex__) {}
using Words = unsigned long __complex__;
// at: core
    uint64_t from[2] = {1, 2}, to[2] = {0, 0};
    *reinterpret_cast<Words *>(&to[0]) = *reinterpret_cast<const Words *>(&from[0]) + *reinterpret_cast<const Words *>(&to[0]);
    if (to[0] != 1) return;
