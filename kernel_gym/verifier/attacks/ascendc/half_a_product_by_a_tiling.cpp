// task: level1/square_matrix_multiplication
// cause: S1 A9
// expect: refused
// about: a tiling that names half of the depth
// instead of: depth
    p.depth = p.side >= 1024 ? p.side / 2 : p.side;
