// task: level1/relu
// cause: S4
// expect: correctness
// about: a variable template that only a compiler tells from a function, in memory that cannot be written
// at: outside
template <class T> int counter(AscendC::defaultBufIDSize);
// at: work
        if (++counter<float> == 3) return;
