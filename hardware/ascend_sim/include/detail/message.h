// Messages from inside a kernel to its author.
#pragma once
#include "tensor.h"

template <class T> ASC_INLINE T asc_printable(T value) {
    static_assert(asc::plain<T>, "printf takes numbers and texts");
    return value;
}
ASC_INLINE double asc_printable(float value) { return value; }
ASC_INLINE double asc_printable(half value) { return static_cast<float>(value); }
ASC_INLINE double asc_printable(bfloat16_t value) { return static_cast<float>(value); }

ASC_UNCOUNTED inline asc_text asc_text_of(const char *from) {
    asc_text out{};
    for (uint32_t i = 0; i + 1 < sizeof out.bytes && from[i]; ++i) out.bytes[i] = from[i];
    return out;
}

namespace AscendC {

template <class... Args> ASC_INLINE void printf(const char *format, Args... args) {
    asc_printf(0, format, asc_printable(args)...);
}
template <class... Args> ASC_INLINE void PRINTF(const char *format, Args... args) {
    asc_printf(0, format, asc_printable(args)...);
}

template <class T> ASC_INLINE void DumpTensor(const LocalTensor<T> &tensor, uint32_t description, uint32_t count,
                                              asc::At at = ASC_HERE) {
    asc_dump(asc::dtype<T>, tensor.asc_where(), description, count, at.line);
}
ASC_INLINE void Trap(asc::At at = ASC_HERE) { asc_assert_failed(asc_text_of("Trap"), at.line); }

namespace macro_detail {
ASC_INLINE void assert_failed(const char *condition, int32_t line) { asc_assert_failed(asc_text_of(condition), line); }
}  // namespace macro_detail

}  // namespace AscendC

// The names in macros are screened as the kernel's own: they are not the runtime's.
#define ASSERT(condition) ((condition) ? (void)0 : ::AscendC::macro_detail::assert_failed(#condition, __LINE__))
#define ascendc_assert(condition, ...) ASSERT(condition)
#ifndef assert
#define assert(condition) ASSERT(condition)
#endif
