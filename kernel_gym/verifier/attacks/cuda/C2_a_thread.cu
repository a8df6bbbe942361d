// task: level1/relu
// cause: C2 H4
// expect: screen
// about: the host function starts a thread
// at: outside
#include <thread>
// at: host
    std::thread worker([] {});
