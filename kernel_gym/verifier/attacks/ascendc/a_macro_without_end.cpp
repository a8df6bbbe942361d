// task: level1/relu
// cause: text S3
// expect: compile
// about: a macro without end
// at: outside
#define F(x) F(x)(x) F(x)
#define G F(F(F(F(F(F(F(F(0))))))))
int g = G;
