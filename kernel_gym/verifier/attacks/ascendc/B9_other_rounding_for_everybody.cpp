// task: level1/relu
// cause: B9
// expect: compile
// about: other rounding for everybody
// at: headers
#include <cfenv>
