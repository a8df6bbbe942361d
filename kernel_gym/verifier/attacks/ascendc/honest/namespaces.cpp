// task: level1/relu
// cause: honest
// expect: feasible
// about: nested and unnamed namespaces
// at: outside
namespace mine::detail {
namespace {
const int32_t kZero = 0;
static const float kOne = 1.0f;
}
__aicore__ inline int32_t Zero() { return kZero; }
}  // namespace mine::detail
// at: work
        n += mine::detail::Zero();
