// task: level1/relu
// cause: I2 S7
// expect: compile
// about: a structure of 64 numbers as the element of a tensor, so that one scalar access reads all of them
// at: outside
struct Piece { float value[64]; };
// instead of: work
        auto from = x.ReinterpretCast<Piece>(), to = y.ReinterpretCast<Piece>();
        for (uint32_t i = 0; i < n / 64; ++i) {
            Piece piece = from.GetValue(i);
            for (int k = 0; k < 64; ++k) piece.value[k] = max(piece.value[k], 0.0f);
            to.SetValue(i, piece);
        }
