// task: level1/relu
// cause: S3
// expect: screen
// about: a comment that a joined line goes on with
// at: outside
// \

static int shared = 0;
