// task: level1/softmax
// cause: A13 S6
// expect: correctness
// about: no maximum subtracted
// instead of: subtract
        
