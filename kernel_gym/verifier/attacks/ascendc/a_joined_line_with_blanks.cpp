// task: level1/relu
// cause: text S3
// expect: screen
// about: a joined line with blanks
// at: outside
as\  
m("nop");
