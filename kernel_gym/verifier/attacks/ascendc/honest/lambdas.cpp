// task: level1/relu
// cause: honest
// expect: feasible
// about: lambdas with captures
// instead of: work
        auto apply = [&](auto &to, const auto &from) { AscendC::Relu(to, from, n); };
        apply(y, x);
