// task: level1/relu
// cause: G3
// expect: screen
// about: embedding a secret
// at: outside
#embed "/etc/passwd"
