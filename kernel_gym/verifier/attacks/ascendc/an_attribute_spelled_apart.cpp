// task: level1/relu
// cause: text S2
// expect: screen
// about: an attribute spelled apart
// at: outside
[ [gnu::ifunc("f")] ] void early();
