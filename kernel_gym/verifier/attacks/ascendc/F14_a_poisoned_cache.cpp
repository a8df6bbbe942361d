// task: level1/relu
// cause: F14
// expect: screen
// about: a poisoned cache
// at: outside
#pragma GCC pch_preprocess "prelude.h.gch"
