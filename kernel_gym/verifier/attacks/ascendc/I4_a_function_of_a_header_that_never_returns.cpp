// task: level1/relu
// cause: I4
// expect: compile
// about: a function that a header declares never to return does return: its caller goes on with the code of another function
// at: outside
namespace std {
void __throw_logic_error(const char *)
{
}
}
__aicore__ void Leave(uint32_t n)
{
    if (n == 77) std::__throw_logic_error(nullptr);
}
// at: core
    Leave(AscendC::GetBlockIdx());
