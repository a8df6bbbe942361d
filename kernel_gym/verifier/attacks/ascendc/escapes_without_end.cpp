// task: level1/relu
// cause: text S8
// expect: compile
// about: escapes without end
// at: end x 200000
\"
