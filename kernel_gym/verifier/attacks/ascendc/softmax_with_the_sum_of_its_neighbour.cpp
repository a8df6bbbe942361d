// task: level1/softmax
// cause: A9
// expect: refused
// about: at the timing sizes a sum is computed for every other row only
// instead of: scale
        if (t_.rows > 1000 && kept_ > 0.0f) sum = kept_, kept_ = 0.0f;
        else kept_ = sum;
        AscendC::Muls(y, x, 1.0f / sum, t_.cols);
// instead of: outside
struct Kept { float kept_ = 0.0f; };
class RowSoftmax : public Kept {
