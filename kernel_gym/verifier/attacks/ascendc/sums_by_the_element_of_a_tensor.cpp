// task: level1/relu
// cause: S7
// expect: no gain
// honest: plain_arithmetic
// about: the element of a tensor holds the sum of address and index, whose bytes are read
// instead of: sum
__aicore__ inline uint64_t Sum(uint64_t a, uint64_t b)
{
    AscendC::GlobalTensor<uint8_t> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t *>(a));
    auto element = tensor(b);
    return *reinterpret_cast<uint64_t *>(&element);
}
