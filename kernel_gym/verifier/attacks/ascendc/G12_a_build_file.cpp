// task: level1/relu
// cause: G12
// expect: compile
// about: a build file
cmake_minimum_required(VERSION 3.16)
add_compile_options(-O3)
