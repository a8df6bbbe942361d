// task: level1/square_matrix_multiplication
// cause: S7 A14
// expect: no gain
// honest: square_matrix_multiplication_eight_buffers
// about: a tiling that claims more buffers than there is memory
// instead of: buffers
    p.cube.depthA1 = p.cube.depthB1 = 30000;
