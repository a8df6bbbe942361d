// task: level1/relu
// cause: C18
// expect: screen
// about: the host function reads a clock of C++'s library
// at: outside
#include <chrono>
using namespace std::chrono;
// at: host
    if (steady_clock::now().time_since_epoch().count() % 2) return 1;
