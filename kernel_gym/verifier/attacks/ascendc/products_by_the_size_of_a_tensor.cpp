// task: level1/relu
// cause: S7
// expect: no gain
// honest: plain_arithmetic
// about: a tensor of another type has another size, whose bytes are read
// instead of: twice
struct Two { uint64_t first, second; };
__aicore__ inline uint64_t Twice(uint64_t v)
{
    AscendC::GlobalTensor<uint16_t> tensor;
    tensor.SetGlobalBuffer(nullptr, v);
    AscendC::GlobalTensor<uint8_t> bytes = tensor.ReinterpretCast<uint8_t>();
    return reinterpret_cast<const Two *>(&bytes)->second;
}
