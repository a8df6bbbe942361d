// task: level1/relu
// cause: honest
// expect: feasible
// about: a table at file scope
// at: outside
constexpr float SCALES[] = {1.0f, 1.0f, 1.0f};
static constexpr int32_t OFFSETS[2][2] = {{0, 0}, {0, 0}};
// instead of: work
        AscendC::Relu(y, x, n);
        AscendC::Muls(y, y, SCALES[OFFSETS[1][n % 2]], n);
