// task: level1/gelu
// cause: honest S1
// expect: feasible
// about: another tile at large sizes, which no smaller size ever takes
// honest: gelu
// at: host
    if (g.total > 1000000) g.tile = 6144;
