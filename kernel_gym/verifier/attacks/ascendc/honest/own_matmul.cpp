// task: level1/relu
// cause: S3
// expect: feasible
// about: classes with names of the Matmul library, which is not included
// honest: relu
// at: outside
using namespace AscendC;
enum class CubeFormat { ND, NZ };
struct TCubeTiling {
    uint32_t M, N;
};
template <class T>
class Matmul {
public:
    __aicore__ inline T Size(const TCubeTiling &tiling) { return tiling.M * tiling.N; }
};

// at: work
        Matmul<uint32_t> own;
        if (own.Size({1, 2}) != 2) return;
