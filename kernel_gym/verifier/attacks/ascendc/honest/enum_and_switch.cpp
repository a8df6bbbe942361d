// task: level1/relu
// cause: honest
// expect: feasible
// about: an enumeration, a switch that falls through
// at: outside
enum class Mode : uint8_t { Plain, Padded, Tail = 7 };
// at: work
        Mode mode = n % 8 == 0 ? Mode::Plain : Mode::Tail;
        switch (mode) {
            case Mode::Plain: n += 0; [[fallthrough]];
            case Mode::Padded: break;
            default: n -= 0;
        }
