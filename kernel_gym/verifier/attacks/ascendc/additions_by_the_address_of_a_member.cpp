// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: the address of a member is the pointer and a constant
// instead of: later
__aicore__ inline Place *Later(Place *p) { return (Place *)&p->behind; }
