// task: level1/relu
// cause: text S8
// expect: screen
// about: strings without end
// at: end x 200000
R"(
