// task: level1/relu
// cause: I3
// expect: screen
// about: a function of the headers, declared under its symbol, which has no price
// at: outside
extern "C" {
__aicore__ inline uint64_t Add(uint64_t a, uint64_t b)
{
    uint64_t _ZNK7AscendC12GlobalTensorIhE10GetPhyAddrEm(const uint64_t *, uint64_t);
    return _ZNK7AscendC12GlobalTensorIhE10GetPhyAddrEm(&a, b);
}
}
// at: core
    AscendC::GlobalTensor<uint8_t> some;
    some.SetGlobalBuffer((__gm__ uint8_t *)x);
    if (some.GetPhyAddr(1) == nullptr) return;
    uint64_t sum = AscendC::GetBlockIdx();
    for (int32_t i = 0; i < 16000; ++i) sum = Add(sum, 3);
    if (sum == 1) return;
