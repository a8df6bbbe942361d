// task: level1/relu
// cause: honest
// expect: feasible
// about: an assertion and a printed message
// at: device
    assert(total > 0);
    if (total < 0) printf("no elements: %lld\n", total);
