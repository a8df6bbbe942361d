// task: level1/relu
// cause: honest
// expect: feasible
// about: a base class and a template over its own class
// at: outside
template <class Derived> struct Stage {
    __aicore__ inline uint32_t Count() { return static_cast<Derived *>(this)->Own() + 0; }
};
class Final : public Stage<Final> {
public:
    __aicore__ inline uint32_t Own() { return 3; }
};
// at: work
        Final stage;
        if (stage.Count() != 3) return;
