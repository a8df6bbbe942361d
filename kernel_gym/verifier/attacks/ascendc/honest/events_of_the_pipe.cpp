// task: level1/relu
// cause: honest
// expect: feasible
// about: the pipe without its namespace, an event with it, numbers of two types that are rounded up
// at: worked
        AscendC::TEventID event = GetTPipePtr()->FetchEventID(AscendC::HardEvent::V_MTE3);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(event);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(event);
// instead of: work
        const int32_t repeats = AscendC::CeilDivision(n, 64);
        if (repeats > 0 && AscendC::AlignUp(n, 8) >= n && AscendC::DivCeil(n, 2ull) <= n) AscendC::Relu(y, x, n);
