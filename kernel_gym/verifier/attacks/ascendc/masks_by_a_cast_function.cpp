// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: a function that is called as one of another type cuts its argument
// instead of: low
__aicore__ inline uint8_t Cut(uint8_t v) { return v; }
template <auto function> struct AsOther {
    using Type = uint64_t (*)(uint64_t);
    static inline const Type value = reinterpret_cast<Type>(reinterpret_cast<uint64_t>(function));
};
__aicore__ inline uint64_t Low(uint64_t v) { return AsOther<Cut>::value(v); }
