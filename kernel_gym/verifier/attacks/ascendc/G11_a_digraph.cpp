// task: level1/relu
// cause: G11
// expect: screen
// about: a digraph
// at: outside
%:include </etc/passwd>
