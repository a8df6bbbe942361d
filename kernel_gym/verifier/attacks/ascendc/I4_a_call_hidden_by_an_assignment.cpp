// task: level1/relu
// cause: I4
// expect: no gain
// about: an assignment without the last bytes of an object hides a call, of a function that seems to be only called
// at: outside
struct Wide {
    uint64_t words[12];
};
__aicore__ int First(Wide value)
{
    return static_cast<int>(value.words[0]);
}
struct Key {};
template <class T> struct Held {
    T value;
};
template <class T> constexpr Held<T *> operator<(T &function, Key)
{
    return {&function};
}
template <class T> constexpr T operator>(Held<T> held, int)
{
    return held.value;
}
inline constexpr Key key{};
inline constexpr auto first = First < key > (0);
using Of = int (*)(uint64_t);
template <auto function> struct Cast {
    static inline const Of value = reinterpret_cast<Of>(reinterpret_cast<uint64_t>(function));
};
struct Padded {
    uint64_t word = 1;
    uint8_t byte = 2;
};
// at: core
    Padded objects[3];
    uint64_t other = 1;
    Padded *p = objects;
    p[1] = p[Cast<first>::value(reinterpret_cast<uint64_t>(&other)) % 3];
