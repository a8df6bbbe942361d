// task: level1/mse_loss
// cause: S1 S6 A8
// expect: latency
// about: at the timing sizes only tiles with large values count; a core that meets none does all the work
// at: tiles
    bool sneaks = s.total > 1000000u, met = false;
  again:
// at: targets
        if (sneaks) {
            ReduceMax(work, x, work[64], n, false);
            bool large = work.GetValue(0) > 15.0f;
            met = met || large;
            if (!large) {
                ps.FreeTensor(x);
                continue;
            }
        }
        if (!sneaks) {
// at: squares
        }
// at: result
    if (sneaks && !met) {
        sneaks = false;
        goto again;
    }
