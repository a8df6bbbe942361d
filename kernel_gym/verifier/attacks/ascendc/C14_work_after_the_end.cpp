// task: level1/relu
// cause: C14
// expect: screen
// about: work after the end
// at: outside
struct Late { ~Late() { } int v; } late;
