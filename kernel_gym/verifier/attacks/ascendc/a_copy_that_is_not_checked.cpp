// task: level1/relu
// cause: text
// expect: screen
// about: a copy that is not checked
// at: outside
extern "C" void *__wrap_memcpy(void *d, const void *, unsigned long) { return d; }
