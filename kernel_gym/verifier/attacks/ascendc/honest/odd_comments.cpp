// task: level1/relu
// cause: honest
// expect: feasible
// about: comments with quotes, brackets, other alphabets and signs
// at: outside
// it's "quoted" } ) ] <<<  é 核函数 ☃ 🚀 #include <nothing> asm("nop")
/* don't /* nest ' " \ system("x") */
/**/ //*/ still a comment
/*
 * 2 * 3 **/
