// task: level1/relu
// cause: S7
// expect: no gain
// honest: plain_arithmetic
// about: a type of the host rounds to half precision; a parameter of its name makes it look like one of the text
// instead of: rounded
void Unused(int __fp16) {}
using Own = __fp16;
__aicore__ inline float Rounded(float v)
{
    Own rounded = v;
    return rounded;
}
