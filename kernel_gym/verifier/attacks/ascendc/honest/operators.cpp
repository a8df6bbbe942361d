// task: level1/relu
// cause: honest
// expect: feasible
// about: operators of a class, constructors and a destructor
// at: outside
struct Size {
    uint32_t v;
    __aicore__ inline explicit Size(uint32_t n) : v(n) {}
    __aicore__ inline ~Size() {}
    __aicore__ inline Size operator+(const Size &o) const { return Size(v + o.v); }
    __aicore__ inline operator uint32_t() const { return v; }
};
// at: work
        n = Size(n) + Size(0);
