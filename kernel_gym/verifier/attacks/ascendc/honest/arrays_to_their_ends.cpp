// task: level1/relu
// cause: honest
// expect: feasible
// about: arrays on the stack, read to the last element, also by the address behind it
// honest: relu
// at: work
        int32_t own[4] = {1, 2, 3, 4}, sum = 0;
        for (const int32_t *at = &own[0]; at != &own[4]; ++at) sum += *at;
        const uint32_t table[2][3] = {{1, 2, 3}, {4, 5, 6}};
        if (sum + own[3 - n % 2] + table[n % 2][n % 3] == 0) return;
