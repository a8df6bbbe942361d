// task: level1/relu
// cause: S3
// expect: screen
// about: a global that is constant only where nothing is compiled
// at: outside
#ifdef NEVER
#define KIND const
#else
#define KIND
#endif
KIND int shared = 0;
