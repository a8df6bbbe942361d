// task: level1/relu
// cause: G4
// expect: screen
// about: probing for files
// at: outside
#if __has_include(</etc/passwd>)
#endif
