// task: level1/relu
// cause: I3
// expect: screen
// about: functions of the headers that have no price, behind an alias of their namespace
// at: outside
namespace raw = asc;
// at: core
    uint64_t sum = AscendC::GetBlockIdx();
    for (int32_t i = 0; i < 16000; ++i) sum = raw::least(raw::bytes_for<char[3]>(sum), 60007ull);
    if (sum == 1) return;
