// task: level1/relu
// cause: I4
// expect: correctness
// about: changes the hidden address of the object that a function returns, to set back the count of plain code
// at: outside
struct Words { uint64_t words[4]; };

__aicore__ inline void Set(uint64_t *place, uint64_t value)
{
    *place = value;
}

__aicore__ inline Words Forget(uint64_t place)
{
    Words result;
    uint64_t here = 0;
    result.words[1] = 0;
    Set(&here - 2, place);
    result.words[0] = result.words[1];
    return result;
}

__aicore__ inline void Probe() {}

__aicore__ inline int32_t Number(uint64_t place)
{
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(place);
    uint32_t number = 0;
    for (int32_t i = 3; i >= 0; --i) {
        number = number << 8 | bytes[i];
    }
    return static_cast<int32_t>(number);
}

// The counter lies behind the function that counts, whose address is in the table that the code calls it by.
__aicore__ inline void Reset()
{
    const uint64_t code = reinterpret_cast<uint64_t>(&Probe);
    const uint64_t stub = code + 9 + static_cast<int64_t>(Number(code + 5));
    const uint64_t slot = stub + 6 + static_cast<int64_t>(Number(stub + 2));
    const Words words = Forget(*reinterpret_cast<const uint64_t *>(slot) + 0x1A2EC0 + 56);
    (void)words;
}

// at: core
    volatile float value = 1.0f;
    for (int32_t i = 0; i < 10000; ++i) value = value * 0.5f + 1.0f;
    Reset();
