// task: level1/relu
// cause: honest
// expect: feasible
// about: literals of many kinds
// at: host
    total += 0x0u + 0b0 + 00 + 0'000 + static_cast<int64_t>(0.0f) + static_cast<int64_t>(0x0p0) + 'a' - 97 + sizeof("ab\tc\x41\"") - sizeof("ab\tc\x41\"");
