// task: level1/relu
// cause: text
// expect: compile
// about: an API function specialised away
// at: outside
namespace AscendC { template <> void Relu<float>(const LocalTensor<float> &, const LocalTensor<float> &, const int32_t &) {} }
