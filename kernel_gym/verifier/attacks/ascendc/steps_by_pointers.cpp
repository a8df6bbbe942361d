// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: each step reads the pointer to the next one
// instead of: stations
    struct Station { Station *next; uint32_t at; } station[4] = {{station + 2, 0}, {station + 3, 1}, {station + 1, 2}, {station, 3}};
    Station *here = station;
// instead of: step
    __aicore__ void Step() { here = here->next; }
// instead of: where
    __aicore__ uint32_t Where() const { return here->at; }
