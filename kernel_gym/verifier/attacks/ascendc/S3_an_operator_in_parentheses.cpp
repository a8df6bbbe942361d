// task: level1/relu
// cause: S3
// expect: screen
// about: an `operator new` in parentheses, which constructs objects at any address
// at: outside
struct Holder {
    uint64_t word;
    __aicore__ inline Holder(uint64_t from) : word(from) {}
};
void *(operator new)(size_t, Holder *place) { return place; }
// at: core
    uint64_t room = 0;
    new (reinterpret_cast<Holder *>(&room)) Holder(1);
    if (room != 1) return;
