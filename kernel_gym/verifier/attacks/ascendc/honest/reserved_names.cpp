// task: level1/relu
// cause: honest
// expect: feasible
// about: names of the author's own that C++ reserves, and words of the compiler that kernels use
// honest: relu
// at: outside
#ifndef __RELU_KERNEL_H__
#define __RELU_KERNEL_H__
#endif
constexpr uint32_t __kLine = __LINE__, _Least = 1;
struct __attribute__((__aligned__(8))) _Range { uint32_t __begin, __end; };
template <class _T, int __N> struct __Fixed { _T data[__N]; };
__aicore__ __inline__ uint32_t __at_least(uint32_t __a, uint32_t _B) { return __a > _B ? __a : _B; }
// at: work
        _Range __range{0, __at_least(n, _Least)};
        __Fixed<int32_t, 4> _Fixed{{1, 2, 3, 4}};
        if (__range.__end < __range.__begin || _Fixed.data[0] == 2 || __kLine == 0) return;
