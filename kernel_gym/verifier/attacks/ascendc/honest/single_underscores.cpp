// task: level1/relu
// cause: honest
// expect: feasible
// about: names with an underscore in front
// at: outside
#define _TILE 4096
struct _Shape { uint32_t _n; };
// instead of: tile
    _Shape _s{_TILE};
    t.tile = _s._n;
