// task: level1/relu
// cause: text S2
// expect: screen
// about: code that is not counted, by the header's word
// at: outside
ASC_UNCOUNTED void free_of_charge() {}
