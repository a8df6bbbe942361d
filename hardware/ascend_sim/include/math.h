// What of <math.h> makes sense in kernels: its constants. The device has no C library.
#pragma once
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_huge_valf()
#define M_E 2.7182818284590452354f
#define M_PI 3.14159265358979323846f
#define M_SQRT2 1.41421356237309504880f
