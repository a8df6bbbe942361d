// task: level1/relu
// cause: honest
// expect: feasible
// about: a loop over an array of structures
// at: outside
struct Span { uint32_t begin, end; };
// at: work
        Span spans[3] = {{0, 1}, {1, 2}, {2, 2}};
        uint32_t length_of_all = 0;
        for (const auto &span : spans) length_of_all += span.end - span.begin;
        if (length_of_all != 2) return;
