// task: level1/relu
// cause: honest
// expect: feasible
// about: alignas and packed structures
// at: outside
struct alignas(64) Wide { float v[16]; };
struct __attribute__((packed)) Tight { uint8_t kind; uint32_t size; };
static_assert(sizeof(Wide) == 64 && sizeof(Tight) == 5, "as laid out");
// at: host
    alignas(32) uint32_t room[8] = {0};
    (void)room;
