#include "elementary.h"

namespace sim::elementary {

namespace {
double floor_of(double x) {
    if (!(absolute(x) < 0x1p52)) return x;
    const double rounded = (x + nearest) - nearest;
    return rounded > x ? rounded - 1 : rounded;
}

double sin_pi(double x) {  // keeps full precision near whole numbers
    const double r = x - 2 * floor_of(x / 2);
    return sin(r * pi);
}
}  // namespace

double power(double x, double y) {
    if (y == 0 || x == 1) return 1;
    if (x != x || y != y) return nan;
    const double magnitude = absolute(x);
    const bool whole = floor_of(y) == y, odd = whole && absolute(y) < 0x1p53 && floor_of(y / 2) * 2 != y;
    if (magnitude == 0) {
        const double value = y > 0 ? 0 : infinity;
        return odd ? with_sign(value, x) : value;
    }
    if (absolute(y) == infinity) {
        if (magnitude == 1) return 1;
        return (magnitude > 1) == (y > 0) ? infinity : 0;
    }
    if (magnitude == infinity) {
        const double value = y > 0 ? infinity : 0;
        return x < 0 && odd ? -value : value;
    }
    if (x < 0 && !whole) return nan;
    const double value = exp(y * log(magnitude));
    return x < 0 && odd ? -value : value;
}

// Exact: subtracts shifted divisors.
double fmod(double x, double y) {
    if (x != x || y != y || y == 0 || absolute(x) == infinity) return nan;
    double rest = absolute(x);
    const double divisor = absolute(y);
    while (rest >= divisor) {
        double part = divisor;
        const int gap =
            static_cast<int>(bit_cast<uint64_t>(rest) >> 52) - static_cast<int>(bit_cast<uint64_t>(divisor) >> 52);
        part = bit_cast<double>(bit_cast<uint64_t>(divisor) + (static_cast<uint64_t>(gap) << 52));
        if (part > rest) part *= 0.5;
        rest -= part;
    }
    return with_sign(rest, x);
}

double lgamma(double x) {
    if (x != x || absolute(x) == infinity) return x == x ? infinity : x;
    if (x <= 0 && floor_of(x) == x) return infinity;
    if (x < 0.5) return log(pi / absolute(sin_pi(x))) - lgamma(1 - x);
    double product = 1;
    for (; x < 10; x += 1) product *= x;
    const double i = 1 / x, s = i * i;
    constexpr double c[] = {-691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12};
    return (x - 0.5) * log(x) - x + 0.91893853320467274178 + i * polynomial(s, c) - log(product);
}

double digamma(double x) {
    if (x != x || x == infinity) return x;
    if (x == -infinity || (x <= 0 && floor_of(x) == x)) return nan;
    double sum = 0;
    if (x < 0.5) {
        const double fraction = x - floor_of(x);
        sum = -pi / tan(pi * fraction);
        x = 1 - x;
    }
    for (; x < 10; x += 1) sum -= 1 / x;
    const double i = 1 / x, s = i * i;
    constexpr double c[] = {-691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12};
    return sum + log(x) - 0.5 * i - s * polynomial(s, c);
}

}  // namespace sim::elementary
