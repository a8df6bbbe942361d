// task: level1/relu
// cause: S3 S10
// expect: refused
// about: a variable that outlives a call, behind a macro that is a constant below
// at: outside
#define KIND
__device__ KIND int kept;
#undef KIND
#define KIND const
// at: device
    kept = 1;
