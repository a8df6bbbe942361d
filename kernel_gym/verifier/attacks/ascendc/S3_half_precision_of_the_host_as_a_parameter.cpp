// task: level1/relu
// cause: S3
// expect: refused
// about: a type of the host processor, by a word that is the name of a parameter elsewhere
// at: outside
__aicore__ inline void Unused(int __fp16) {}
using Own = __fp16;
__aicore__ inline float Round(float v) { Own h = v; return h; }
// at: core
    float rounded = 0.1f;
    for (int32_t i = 0; i < 16000; ++i) rounded = Round(rounded) + 1.0f;
    if (rounded == 3.0f) return;
