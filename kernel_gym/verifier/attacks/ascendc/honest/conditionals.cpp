// task: level1/relu
// cause: honest
// expect: feasible
// about: conditional compilation
// at: outside
#ifndef TILE_LENGTH
#define TILE_LENGTH 4096
#endif
#if defined(DEBUG) && DEBUG > 1
#error no debugging here
#elif TILE_LENGTH == 4096
#else
#undef TILE_LENGTH
#endif
// instead of: tile
    t.tile = TILE_LENGTH;
