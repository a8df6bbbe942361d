// `kernel<<<blocks, l2, stream>>>(args)` is rewritten to asc_launcher<kind, kernel>(blocks, l2, stream)(args).
#pragma once
#include "types.h"

namespace asc {

// What a core gets of an argument: a reference, from which the kernel's own parameter is made, or the object to which a
// parameter that is a reference is bound.
template <class P>
struct Passed {
    using type = const P &;
};
template <class P>
struct Passed<const P &> {
    using type = P;
};

// The kernel is part of the type, so that it is called by name: calls through pointers are rejected in binaries.
template <uint32_t kind, auto kernel, class... P>
struct Launcher {
    template <class T>
    static constexpr bool is_plain = __is_trivially_constructible(T, T &) && __is_trivially_constructible(T, const T &);
    static_assert((!asc::array<referred<P>> && ...), "a kernel's arguments are copied: put an array into a class");
    static_assert((is_plain<referred<P>> && ...),
                  "a kernel's arguments are copied as bytes: their classes have no copy constructors of their own");
    static_assert(asc::one_of<decltype(kernel), void (*)(P...), void (*)(P...) noexcept>,
                  "a kernel takes its arguments as they are: nothing is converted on a core");
    uint32_t blocks;

    // Every core gets its own copy of the arguments.
    ASC_UNCOUNTED void operator()(P... args, At at = ASC_HERE) const {
        const auto body = [args...]() ASC_UNCOUNTED { kernel(static_cast<typename Passed<P>::type>(args)...); };
        using Body = decltype(body);
        asc_launch(
            blocks, kind, [](void *closure) ASC_UNCOUNTED { (*static_cast<Body *>(closure))(); },
            const_cast<void *>(static_cast<const void *>(&body)), at.line);
    }
};

}  // namespace asc

// By their prefix no argument's class finds them for an author.
template <uint32_t kind, auto kernel, class... P>
ASC_UNCOUNTED asc::Launcher<kind, kernel, P...> asc_launcher_of(void (*)(P...), uint32_t blocks) {
    return {blocks};
}

template <uint32_t kind, auto kernel>
ASC_UNCOUNTED auto asc_launcher(uint32_t blocks, void *l2, void *stream) {
    (void)l2, (void)stream;
    return asc_launcher_of<kind, kernel>(kernel, blocks);
}
