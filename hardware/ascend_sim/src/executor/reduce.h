// How reductions add and compare, shared with the row-wise library functions.
#pragma once
#include <cstdint>

namespace sim {

// Whether a candidate replaces the best so far; the first of equals stays, not-a-number wins.
bool beats(uint32_t op, float candidate, float best);
// a + b, rounded to the element type.
float add_as(uint32_t dtype, float a, float b);
// Adds neighbours, then neighbours of the sums, and so on; uses up the row.
float tree_sum(float *value, uint32_t n, uint32_t dtype);
// How many elements of work a reduction of so many repeats needs.
uint64_t reduce_work_elements(uint32_t op, bool with_index, bool counted, uint64_t repeats, uint32_t element);

}  // namespace sim
