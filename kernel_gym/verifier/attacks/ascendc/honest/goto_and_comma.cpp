// task: level1/relu
// cause: honest
// expect: feasible
// about: goto, do, comma, nested ternaries
// at: host
    int32_t i = 0, j = 0;
    do { ++i, j += 2; } while (i < 3);
again:
    if (j-- > 4) goto again;
    total += i == 3 ? j == 3 ? 0 : 0 : 0;
