// task: level1/relu
// cause: S3
// expect: screen
// about: a macro of the headers before a parenthesis that is a macro: its argument is compiled
// at: outside
#define LP (
template <class T> __aicore__ inline T __inout_pipe__ LP T a ) { return a; }
// at: work
        float *forged = __inout_pipe__ LP (float *)4096ull );
        if (n == 0) *forged = 1.0f;
