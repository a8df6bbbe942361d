// task: level1/relu
// cause: text
// expect: screen
// about: a user-defined literal
// at: outside
int operator""_x(const char *s, unsigned long) { return *s; }
int g = "a"_x;
