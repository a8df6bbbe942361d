// task: level1/relu
// cause: text S2
// expect: screen
// about: assembly in the name of a section
// at: outside
[[maybe_unused, gnu::section(".text,\"awx\",@progbits\n.incbin \"/etc/passwd\"#")]] void f() {}
