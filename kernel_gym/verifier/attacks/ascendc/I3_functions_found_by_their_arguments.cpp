// task: level1/relu
// cause: I3
// expect: compile
// about: functions of the headers that have no price, found by the class of an argument
// at: outside
template <class A, class B, class R, class... More>
R TimesOf(void (*)(A, B, R, More...)) { return R(0); }
using Times = decltype(TimesOf(&AscendC::Brcb<float>));
template <class T> __aicore__ inline uint64_t bytes_for() { return sizeof(T); }
// at: core
    uint64_t sum = AscendC::GetBlockIdx();
    for (int32_t i = 0; i < 16000; ++i) sum = least(Times(bytes_for<char[3]>(Times(sum))), 60007ull);
    if (sum == 1) return;
