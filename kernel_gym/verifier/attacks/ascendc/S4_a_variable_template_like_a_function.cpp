// task: level1/relu
// cause: S4
// expect: screen
// about: a variable template whose value in parentheses looks like a parameter
// at: outside
#include <type_traits>
template <class T> int counter(T::value);
// at: work
        if (++counter<std::integral_constant<int, 0>> == 3) return;
