// task: level1/relu
// cause: I2
// expect: compile
// about: products and shifts of integers of 128 bits in one operation
// at: outside
__aicore__ inline uint64_t Product(uint64_t a, uint64_t b) { return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64); }
// at: core
    uint64_t product = AscendC::GetBlockIdx();
    for (int32_t i = 0; i < 16000; ++i) product = Product(product + 0x9e3779b97f4a7c15ull, 12345678901234567ull);
    if (product == 1) return;
