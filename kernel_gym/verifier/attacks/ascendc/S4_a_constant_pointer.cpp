// task: level1/relu
// cause: S4
// expect: screen
// about: a constant pointer to an object that can be written
// at: outside
static int cell = 0;
int *const shared = &cell;
// at: work
        ++*shared;
