// task: level1/relu
// cause: S4
// expect: screen
// about: a global behind a namespace and a comma
// at: outside
namespace deep { namespace er { const int one = 1, *shared = &one; } }
