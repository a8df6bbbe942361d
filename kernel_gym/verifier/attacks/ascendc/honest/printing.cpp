// task: level1/relu
// cause: honest
// expect: feasible
// about: a printed message with signs in it
// at: work
        if (n == 0xFFFFFFFFu) AscendC::printf("tile %u: \"%d%%\" // no comment /* */ <<<1>>>\n", n, 5);
