// task: level1/relu
// cause: S2 S3
// expect: compile
// about: a macro that puts a function of the author's into the Matmul library, whose functions are not counted
// at: headers
#define SetWorkspace                                                                                                   \
    Free()                                                                                                             \
    {                                                                                                                  \
        volatile uint32_t sum = 0;                                                                                     \
        for (uint32_t i = 0; i < 20000; ++i) sum = sum % 3 == 1 ? sum + 2 : sum + 1;                                   \
    }                                                                                                                  \
    void SetWorkspace
#include "lib/matmul_intf.h"
using MT = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;
// at: work
        AscendC::Matmul<MT, MT, MT> mm;
        mm.Free();
