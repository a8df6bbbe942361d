// task: level1/relu
// cause: S8
// expect: compile
// about: an expression that is too deep for a compiler
// at: work
        float deep =
// at: work x 20000
(
// at: work
1.0f;
