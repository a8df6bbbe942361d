// task: level1/relu
// cause: honest
// expect: feasible
// about: a variadic template
// at: outside
template <class... Numbers>
__aicore__ inline uint32_t Sum(Numbers... numbers) { return (static_cast<uint32_t>(numbers) + ... + 0u); }
// at: work
        if (Sum(1, 2u, 3) != 6) return;
