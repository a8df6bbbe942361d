// task: level1/relu
// cause: S8
// expect: refused
// about: thousands of launches of a kernel with thousands of words
// at: outside
__global__ __aicore__ void many() { AscendC::Nd2NzParams params;
// at: outside x 30000
int a;
// at: outside
}
void never(void *stream) {
// at: outside x 12000
many<<<1, nullptr, stream>>>();
// at: outside
}
