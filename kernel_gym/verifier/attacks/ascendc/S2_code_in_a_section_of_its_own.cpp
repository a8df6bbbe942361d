// task: level1/relu
// cause: S2
// expect: screen
// about: code in a section that is writable
// at: outside
__attribute__((section(".text.own,\"awx\",@progbits #"))) static void f() {}
