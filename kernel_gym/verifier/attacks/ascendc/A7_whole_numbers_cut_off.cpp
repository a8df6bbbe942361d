// task: attention/dy_quantize
// cause: A7
// expect: correctness
// about: a number half way between two integers may be rounded to either, but no other number may be cut off
// instead of: round
        Trunc(v, v, n * GROUP);
