// task: level1/square_matrix_multiplication
// cause: honest
// expect: feasible
// about: a matrix product with as many buffers as L1 holds
// instead of: buffers
    p.cube.depthA1 = p.cube.depthB1 = 8;  // @buffers
