// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: floats have a name of the library's that the kernel gives to an integer, too
// instead of: below
    struct Own { using type = uint32_t; };
    std::remove_reference<float &>::type e = a, f = b, g = c, h = d;
    return (e < 0.0f) + (f < 0.0f) + (g < 0.0f) + (h < 0.0f) + (e + f < 0.0f) + (g + h < 0.0f);
