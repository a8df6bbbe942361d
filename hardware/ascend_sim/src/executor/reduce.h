// The additions and comparisons of reductions, shared with the row-wise library functions.
#pragma once
#include <cstdint>

namespace sim {

// Whether `candidate` replaces the best value so far. The first of equal values is kept; not-a-number always wins.
bool beats(uint32_t op, float candidate, float best);
// a + b, rounded to the element type.
float add_as(uint32_t dtype, float a, float b);
// Pairwise sum: adds neighbours, then neighbours of the sums, and so on. Overwrites the row.
float tree_sum(float *value, uint32_t n, uint32_t dtype);
// Elements of work for a reduction over `repeats` repeats.
uint64_t reduce_work_elements(uint32_t op, bool with_index, bool counted, uint64_t repeats, uint32_t element);

}  // namespace sim
