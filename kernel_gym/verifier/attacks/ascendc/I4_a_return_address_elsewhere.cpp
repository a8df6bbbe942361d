// task: level1/relu
// cause: I4
// expect: correctness
// about: changes the return address of an aligned frame, which kept it behind a register that it saved
// at: outside
struct alignas(64) Line { uint64_t words[8]; };

__aicore__ inline uint64_t Take(Line line)
{
    return line.words[0];
}

__aicore__ inline uint64_t Skip(uint64_t bytes)
{
    Line line;
    line.words[0] = bytes;
    uint64_t *frame = line.words;
    uint64_t *end = reinterpret_cast<uint64_t *>(frame[21]);
    end[-1] += bytes;
    return Take(line);
}

// at: core
    if (Skip(0) != 0) return;
