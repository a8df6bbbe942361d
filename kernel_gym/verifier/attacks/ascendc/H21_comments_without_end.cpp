// task: level1/relu
// cause: H21 S8
// expect: compile
// about: comments without end
// at: end x 200000
/*
