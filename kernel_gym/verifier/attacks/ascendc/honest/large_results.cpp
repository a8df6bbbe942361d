// task: level1/relu
// cause: honest
// expect: feasible
// about: functions that return large objects: in loops, in each other, by members, and filled through pointers
// at: outside
struct Plan {
    uint32_t parts[12];
    uint32_t used;
    __aicore__ inline Plan With(uint32_t part) const
    {
        Plan plan = *this;
        uint32_t &place = plan.parts[plan.used++];
        place = part;
        return plan;
    }
};

__aicore__ inline void Fill(Plan *plan, uint32_t n)
{
    for (uint32_t i = 0; i < 12; ++i) plan->parts[i] = i < n ? i : 0;
    plan->used = n;
}

__aicore__ inline Plan Planned(uint32_t n)
{
    Plan plan;
    Fill(&plan, n);
    return n < 4 ? Planned(n + 1) : plan;
}

template <typename T>
__aicore__ inline AscendC::LocalTensor<T> Same(AscendC::LocalTensor<T> tensor)
{
    return tensor[0];
}

// at: operand
        const Plan plan = Planned(n % 4).With(7).With(8);
        if (plan.used != 6 || plan.parts[3] != 3 || plan.parts[5] != 8) return;
// instead of: work
        AscendC::Relu(Same(y), Same(Same(x)), n);
