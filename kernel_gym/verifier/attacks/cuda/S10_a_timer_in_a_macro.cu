// task: level1/relu
// cause: S10
// expect: refused
// about: a timer named by a macro that makes strings
// at: outside
#define S(x) #x
// at: device
    long long now;
    asm volatile("mov.u64 %0, %%" S(globaltimer) ";" : "=l"(now));
    if (now == 0) return;
