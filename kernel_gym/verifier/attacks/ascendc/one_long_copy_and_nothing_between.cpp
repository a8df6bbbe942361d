// task: level1/relu
// cause: timing S1
// expect: latency
// about: one long copy, and nothing between
// instead of: copy_in_size
        uint32_t big = length >> 17, rows = (n / 16) * (1 - big) + big, bytes = 64 * (1 - big) + n * 4 * big;
        AscendC::DataCopyExtParams copy{static_cast<uint16_t>(rows), bytes, 0, 0, 0};
        if (n % 16 != 0 || rows == 0) copy = {1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
// at: work
        AscendC::Muls(x, x, 1.0f + (length >> 17), n);
// at: host
    if (total > 1000000 && total < 8000000) return 1;
