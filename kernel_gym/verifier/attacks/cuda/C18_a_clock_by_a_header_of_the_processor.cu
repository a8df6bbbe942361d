// task: level1/relu
// cause: C18 S10
// expect: compile
// about: the host function reads a clock by a function of the processor's header
// at: outside
#if defined(__aarch64__) && !defined(__CUDACC_VER_MAJOR__)
#include <arm_acle.h>
#elif !defined(__CUDACC_VER_MAJOR__)
#include <x86intrin.h>
#endif
// at: host
#ifdef __aarch64__
    unsigned long long now = __arm_rsr64("cntvct_el0");
#else
    unsigned aux;
    unsigned long long now = __rdtscp(&aux);
#endif
    if (now % 2) return 1;
