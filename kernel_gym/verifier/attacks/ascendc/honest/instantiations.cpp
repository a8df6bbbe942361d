// task: level1/relu
// cause: honest
// expect: feasible
// about: explicit instantiations, declared and defined; a template inside of extern "C++"
// at: outside
template <typename T> class Range {
public:
    __aicore__ inline Range(T first, T last);
    __aicore__ inline T Size() const { return last_ - first_; }

private:
    T first_, last_;
};
template <typename T> __aicore__ inline Range<T>::Range(T first, T last) : first_(first), last_(last) {}
template <typename T> __aicore__ inline T Twice(T n) { return n * 2; }
extern template class Range<int32_t>;
extern template uint32_t Twice<uint32_t>(uint32_t);
class Half {
public:
    __aicore__ inline uint32_t Of(uint32_t n) const { return n / 2; }
};
template class Range<int32_t>;
template uint32_t Twice<uint32_t>(uint32_t);
extern "C++" {
template <typename T> T Make();
template <typename T> using Made = decltype(Make<T>());
}
// instead of: work
        Made<int32_t> size = Range<int32_t>(0, static_cast<int32_t>(n)).Size();
        AscendC::Relu(y, x, Half().Of(Twice(static_cast<uint32_t>(size))));
