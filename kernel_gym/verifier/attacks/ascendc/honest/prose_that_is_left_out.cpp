// task: level1/relu
// cause: honest
// expect: feasible
// about: prose with apostrophes and open quotes between #if 0 and #endif
// at: outside
#if 0
This isn't C++: "an open quote and ( brackets {
#endif
