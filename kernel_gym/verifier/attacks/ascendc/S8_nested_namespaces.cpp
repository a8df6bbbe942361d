// task: level1/relu
// cause: S8
// expect: refused
// about: namespaces inside each other
// at: end x 10000
namespace a {
