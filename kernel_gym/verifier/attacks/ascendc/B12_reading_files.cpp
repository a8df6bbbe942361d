// task: level1/relu
// cause: B12
// expect: screen
// about: reading files
// at: host
    fopen("expected.bin", "rb");
