// task: level1/relu
// cause: honest
// expect: feasible
// about: loops that begin at the label of a case, and at one that is jumped to
// at: outside
__aicore__ inline uint32_t CountDown(uint32_t kind, uint32_t count)
{
    uint32_t steps = 0;
    switch (kind) {
    case 0:
        do { ++steps; } while (--count > 0);
        break;
    case 1: {
        do { steps += 2; } while (--count > 0);
        break;
    }
    default:
        do { steps += 3; } while (--count > 0);
    }
    if (steps > 1000) goto again;
    return steps;
again:
    while (steps > 1000) steps -= 1000;
    return steps;
}
// instead of: work
        if (CountDown(n % 3, 3) > 0) AscendC::Relu(y, x, n);
