// task: level1/relu
// cause: honest
// expect: feasible
// about: aliases of types, templates and namespaces
// at: outside
namespace ac = AscendC;
template <class T> using Local = AscendC::LocalTensor<T>;
typedef unsigned int Count;
using Real = float;
// instead of: operand
        Local<Real> x = inQueue.DeQue<Real>();
        Count count = n;
        (void)count;
