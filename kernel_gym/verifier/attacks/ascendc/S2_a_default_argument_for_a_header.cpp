// task: level1/relu
// cause: S2
// expect: compile
// about: arithmetic in the default argument of a function that a template of the headers calls, which is not counted
// at: headers
#include "lib/matmul_intf.h"
__aicore__ inline float *Place()
{
    float here;
    return &here - 65536;
}
struct Worker {
    __aicore__ inline void Init(const TCubeTiling *, AscendC::TPipe *,
                                float = (Place()[0] = Place()[0] * 0.5f + 1.5f / (Place()[0] * Place()[0] + 1.0f)))
    {
    }
};
// at: work
        Worker worker;
        for (int32_t i = 0; i < 1000; ++i) AscendC::macro_detail::regist_matmul(nullptr, nullptr, worker, nullptr);
