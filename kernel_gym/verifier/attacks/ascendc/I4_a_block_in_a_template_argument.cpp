// task: level1/relu
// cause: I4
// expect: no gain
// about: a template argument makes the head of a function look like its first basic block in the compiler's dump
// at: outside
struct bb {};  // g++ writes `Write<bb [1]>`

template <class T>
__aicore__ inline void Write(uint64_t *followed, uint64_t place)
{
    uint64_t here = 0;
    uint64_t *frame = &here;
    *followed = 1;
    frame[-1] = place;
    *followed = 2;
}

// at: core
    uint64_t allowed = 0, other = 0;
    Write<bb[1]>(&allowed, reinterpret_cast<uint64_t>(&other));
    if (allowed + other != 3) return;
