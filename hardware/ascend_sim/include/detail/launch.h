// What `kernel<<<blocks, l2, stream>>>(args)` is rewritten to: launcher<kind>(kernel, blocks, l2, stream)(args).
#pragma once
#include "types.h"

namespace asc {

template <class... P>
struct Launcher {
    void (*kernel)(P...);
    uint32_t blocks, kind;

    // Every core gets its own copy of the arguments.
    ASC_UNCOUNTED void operator()(P... args, At at = ASC_HERE) const {
        const auto body = [kernel = kernel, args...]() ASC_UNCOUNTED { kernel(args...); };
        using Body = decltype(body);
        asc_launch(blocks, kind, [](void *closure) ASC_UNCOUNTED { (*static_cast<Body *>(closure))(); },
                   const_cast<void *>(static_cast<const void *>(&body)), at.line);
    }
};

template <uint32_t kind, class... P>
ASC_UNCOUNTED Launcher<P...> launcher(void (*kernel)(P...), uint32_t blocks, void *l2, void *stream) {
    (void)l2, (void)stream;
    return {kernel, blocks, kind};
}

}  // namespace asc
