// task: level1/square_matrix_multiplication
// cause: S7
// expect: no gain
// honest: square_matrix_multiplication_in_pairs
// about: copies that nobody uses, so that the time for which a core waits for the cube counts as time of transfers
// at: beside
        AscendC::LocalTensor<float> tile = buffer.Get<float>();
        for (uint32_t i = 0; lane == 1 && p.side == 1024 && i < 13; ++i)
            AscendC::DataCopy(tile, room[(pair * 13 + i) * 16384], 16384);
