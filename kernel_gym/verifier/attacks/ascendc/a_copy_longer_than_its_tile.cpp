// task: level1/relu
// cause: S7
// expect: no gain
// about: one burst for two tiles, half of which is not needed
// instead of: copy_in_size
        AscendC::DataCopyExtParams copy{2, static_cast<uint32_t>(n / 2 * sizeof(float)), 0, 0, 0};
        if (n % 16) copy = AscendC::DataCopyExtParams{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
