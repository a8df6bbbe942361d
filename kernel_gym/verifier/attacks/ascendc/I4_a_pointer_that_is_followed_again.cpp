// task: level1/relu
// cause: I4
// expect: no gain
// about: changes a pointer between two stores through it, of which g++ checks the first only
// at: outside
// Writes 2 to any place: `followed` lies below `here`.
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
    Write(&allowed, reinterpret_cast<uint64_t>(&other));
    if (allowed + other != 3) return;
