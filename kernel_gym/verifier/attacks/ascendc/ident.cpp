// task: level1/relu
// cause: text
// expect: screen
// about: #ident
// at: outside
#ident "PASS"
