// task: level1/relu
// cause: S2
// expect: screen
// about: a tensor of the author's own, whose constructor has arithmetic in a default argument, made by a header
// at: headers
struct Own;
template <>
class alignas(16) AscendC::LocalTensor<Own> {
public:
    template <class Where>
    __aicore__ inline LocalTensor(const Where &where, float = sizeof(Where) * AscendC::GetBlockIdx() / 1.5f)
    {
    }
};
// at: work
        AscendC::TBuf<> buffer;
        for (int32_t i = 0; i < 1000; ++i) buffer.Get<Own>();
