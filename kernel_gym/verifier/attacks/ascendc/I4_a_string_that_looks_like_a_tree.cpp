// task: level1/relu
// cause: I4
// expect: feasible
// about: a string has lines of the compiler's dump in it, which would describe another call than there is
// at: core
    const char *text = "\n@1      call_expr        type: @2       fn  : @3       \n@2      void_type        algn: 8 \n";
    if (text == nullptr) return;
