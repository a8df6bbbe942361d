// Other loads into the cube's memories: from global memory, transposed, as patches of an image, as a constant.
#include "numerics/dtype.h"
#include "executor.h"
#include "fractals.h"

namespace sim {

namespace {
constexpr uint32_t loaded = floats | bit_of(ASC_BF16) | bit_of(ASC_I8) | bit_of(ASC_U8);
constexpr uint32_t constants = floats | bit_of(ASC_BF16) | words16 | words32;

// The place of an element before and after a transposition, in bytes.
struct Move { uint64_t from, to; };

// Elements of a fixed size: a copy of each is one load and one store.
template <uint64_t bytes>
void move_all(const std::vector<Move> &moves, const uint8_t *in, uint8_t *out) {
    for (const Move &move : moves) std::memcpy(out + move.to, in + move.from, bytes);
}
}  // namespace

void Executor::load_global_fractals(asc_local dst, asc_global src, asc_fractals shape, uint32_t dtype, int32_t line) {
    Core &core = running(line);
    const char *what = "LoadData from global memory";
    const uint32_t element = element_of(dtype, loaded, what);
    if (dst.space != ASC_L1 && dst.space != ASC_L0A && dst.space != ASC_L0B)
        diagnostics_.fail(Rule::Space, text("%s to %s", what, name_of_space(dst.space)), "it goes to A1, B1, A2 or B2");
    if (shape.repeat > max_repeat || shape.start > 65535 || shape.src_stride > 65535 || shape.dst_gap > 65535 ||
        shape.transposed) {
        diagnostics_.fail(Rule::Cube,
                          text("%s with %u repeats from fractal %u, strides %u and %u", what, shape.repeat, shape.start,
                               shape.src_stride, shape.dst_gap),
                          "it does not transpose, and repeats at most 255 times");
    }
    if (shape.repeat == 0) return;
    if (dst.addr % (dst.space == ASC_L1 ? 32 : fractal_bytes))
        diagnostics_.fail(Rule::Alignment, text("%s to %s[0x%x]", what, name_of_space(dst.space), dst.addr),
                          "L0A and L0B start on 512 bytes, L1 on 32");
    const uint64_t step = (1ull + shape.dst_gap) * fractal_bytes,
                   stride = static_cast<uint64_t>(shape.src_stride) * fractal_bytes;
    const Bytes to = bytes_of(dst, (shape.repeat - 1) * step + fractal_bytes, what, "destination");
    const asc_global first = src + static_cast<uint64_t>(shape.start) * fractal_bytes;
    core.clocks.issue(ASC_MTE2);
    touch(core, ASC_MTE2, to, true, what);
    Rows rows = {0, fractal_bytes, shape.repeat, std::max<uint64_t>(stride, 1)};
    if (stride == 0) rows.count = 1;  // the same fractal in every repeat
    const uint32_t tensor = touch_global(core, ASC_MTE2, first, rows, element, false, 0, what);
    count("LoadData");
    emit_copy(core, Kind::CopyIn, ASC_MTE2, dst, first, {0, fractal_bytes, shape.repeat, stride}, dtype, 0);
    if (!options_.compute) return;
    work(static_cast<uint64_t>(shape.repeat) * fractal_bytes / element);
    LocalMemory &memory = core.memory(dst.space);
    uint8_t *data = memory.data(to.begin, to.end), *valid = memory.valid(to.begin, to.end);
    const uint64_t offset = first - ASC_GM_BASE - tensor * ASC_GM_STRIDE;
    for (uint64_t i = 0; i < shape.repeat; ++i) {
        const uint64_t from = offset + i * stride;
        global_.load({tensor, from, from + fractal_bytes}, data + i * step, valid + i * step);
    }
}

void Executor::check_load(const asc_local &dst, const asc_local &src, const asc_fractals &shape,
                          const char *what) const {
    if (src.space != ASC_L1 || (dst.space != ASC_L0A && dst.space != ASC_L0B)) {
        diagnostics_.fail(Rule::Space,
                          text("%s from %s to %s", what, name_of_space(src.space), name_of_space(dst.space)),
                          "it goes from A1 or B1 to A2 or B2");
    }
    if (shape.repeat > max_repeat || shape.start > 65535 || shape.src_stride > 65535 || shape.dst_gap > 65535)
        diagnostics_.fail(Rule::Cube, text("%s with %u repeats from %u, strides %u and %u", what, shape.repeat,
                                           shape.start, shape.src_stride, shape.dst_gap));
    if (dst.addr % fractal_bytes || src.addr % 32)
        diagnostics_.fail(Rule::Alignment, text("%s from 0x%x to 0x%x", what, src.addr, dst.addr),
                          "L0A and L0B start on 512 bytes");
}

// A square is n x n elements: 16 x 16 of 16 or 32 bits, 32 x 32 of 8 bits. The fractals of an 8-bit square are stacked
// vertically, those of a 32-bit square lie side by side.
void Executor::load_transposed(asc_local dst, asc_local src, asc_fractals shape, uint32_t fractal_gap, uint32_t dtype,
                               int32_t line) {
    Core &core = running(line);
    const char *what = "LoadDataWithTranspose";
    const uint32_t element = element_of(dtype, loaded, what);
    check_load(dst, src, shape, what);
    if (fractal_gap > 65535 || shape.transposed != 1)
        diagnostics_.fail(Rule::Cube, text("%s with a gap of %u", what, fractal_gap));
    if (shape.repeat == 0) return;
    const uint64_t side = element == 1 ? 32 : 16, fractals = element == 2 ? 1 : 2, square = fractals * fractal_bytes;
    const uint64_t last = shape.repeat - 1, to_step = (1ull + shape.dst_gap) * fractal_bytes,
                   from_step = shape.src_stride * square, first = shape.start * square;
    const uint64_t gap = (1ull + fractal_gap) * fractal_bytes;
    const Bytes from = bytes_of(src, first + last * from_step + square, what, "source");
    const Bytes to = bytes_of(dst, last * to_step + (fractals - 1) * gap + fractal_bytes, what, "destination");
    core.clocks.issue(ASC_MTE1);
    touch(core, ASC_MTE1, {from.space, static_cast<uint32_t>(from.begin + first), from.end}, false, what);
    touch(core, ASC_MTE1, to, true, what);
    count(what);
    emit_load(dst, src, dtype, shape.repeat * fractals);
    if (!options_.compute) return;
    work(shape.repeat * square / element);
    LocalMemory &source = core.memory(ASC_L1), &target = core.memory(dst.space);
    const uint8_t *in[] = {source.data(from.begin, from.end), source.valid(from.begin, from.end)};
    uint8_t *out[] = {target.data(to.begin, to.end), target.valid(to.begin, to.end)};
    const uint64_t wide = 32 / element;  // columns of a fractal
    const auto fractal_of = [&](uint64_t row, uint64_t column) { return element == 1 ? row / 16 : column / wide; };
    const auto inside = [&](uint64_t row, uint64_t column) { return row % 16 * 32 + column % wide * element; };
    std::vector<Move> moves(side * side);
    for (uint64_t row = 0; row < side; ++row)
        for (uint64_t column = 0; column < side; ++column)
            moves[row * side + column] = {first + fractal_of(row, column) * fractal_bytes + inside(row, column),
                                          fractal_of(column, row) * gap + inside(column, row)};
    const auto move = element == 1 ? move_all<1> : element == 2 ? move_all<2> : move_all<4>;
    for (int plane = 0; plane < 2; ++plane)
        for (uint64_t repeat = 0; repeat < shape.repeat; ++repeat)
            move(moves, in[plane] + repeat * from_step, out[plane] + repeat * to_step);
}

void Executor::load_image(asc_local dst, asc_local src, asc_image image, uint64_t pad_bits, uint32_t dtype,
                          int32_t line) {
    Core &core = running(line);
    const char *what = "LoadData of an image";
    const uint32_t element = element_of(dtype, floats | bit_of(ASC_BF16) | bit_of(ASC_I8), what), c0 = 32 / element;
    if (src.space != ASC_L1 || dst.space != ASC_L0A)
        diagnostics_.fail(Rule::Space,
                          text("%s from %s to %s", what, name_of_space(src.space), name_of_space(dst.space)),
                          "the simulator takes it from A1 to A2");
    const bool fits = image.h && image.w && image.h <= 32767 && image.w <= 32767 && image.channels &&
                      image.channels <= 65535 && image.k_extent <= 65535 && image.m_extent <= 65535 &&
                      image.k_start <= 65535 && image.m_start <= 65535 && image.stride_w && image.stride_h &&
                      image.stride_w <= 63 && image.stride_h <= 63 && image.filter_w && image.filter_h &&
                      image.filter_w <= 511 && image.filter_h <= 511 && image.dilation_w && image.dilation_h &&
                      image.dilation_w <= 255 && image.dilation_h <= 255 && image.left <= 255 && image.right <= 255 &&
                      image.top <= 255 && image.bottom <= 255 && image.k_start % c0 == 0 && image.k_extent % c0 == 0 &&
                      image.m_start % 16 == 0 && image.m_extent % 16 == 0;
    const uint64_t reach_w = (image.filter_w - 1ull) * image.dilation_w + 1,
                   reach_h = (image.filter_h - 1ull) * image.dilation_h + 1;
    const uint64_t width = static_cast<uint64_t>(image.w) + image.left + image.right,
                   height = static_cast<uint64_t>(image.h) + image.top + image.bottom;
    if (!fits || reach_w > width || reach_h > height) {
        diagnostics_.fail(
            Rule::Cube,
            text("%s of %u x %u x %u with a filter of %u x %u, from (%u, %u) on %u x %u", what, image.h, image.w,
                 image.channels, image.filter_h, image.filter_w, image.m_start, image.k_start, image.m_extent,
                 image.k_extent),
            "starts and extents are multiples of 16 along m and of 32 bytes along k, the filter fits the padded image");
    }
    if (image.k_extent == 0 || image.m_extent == 0) return;
    if (dst.addr % fractal_bytes || src.addr % 32)
        diagnostics_.fail(Rule::Alignment, text("%s from 0x%x to 0x%x", what, src.addr, dst.addr),
                          "L0A starts on 512 bytes");
    const uint64_t blocks = divide_up(image.channels, c0), across = (width - reach_w) / image.stride_w + 1,
                   down = (height - reach_h) / image.stride_h + 1;
    const Bytes from = bytes_of(src, blocks * image.h * image.w * 32, what, "source");
    const uint64_t steps = image.k_extent / c0, rows = image.m_extent / 16;
    const Bytes to = bytes_of(dst, rows * steps * fractal_bytes, what, "destination");
    core.clocks.issue(ASC_MTE1);
    touch(core, ASC_MTE1, from, false, what);
    touch(core, ASC_MTE1, to, true, what);
    count("LoadData3D");
    emit_load(dst, src, dtype, rows * steps);
    if (!options_.compute) return;
    work(static_cast<uint64_t>(image.m_extent) * image.k_extent);
    LocalMemory &source = core.memory(ASC_L1), &target = core.memory(dst.space);
    const uint8_t *in = source.data(from.begin, from.end), *in_valid = source.valid(from.begin, from.end);
    uint8_t *out = target.data(to.begin, to.end), *out_valid = target.valid(to.begin, to.end);
    uint8_t padding[32];
    for (uint32_t i = 0; i < 32; i += element) std::memcpy(padding + i, &pad_bits, element);
    for (uint64_t m = 0; m < image.m_extent; ++m) {
        for (uint64_t step = 0; step < steps; ++step) {
            // Past the last output or channel there is only padding.
            uint8_t *place = out + (m / 16 * steps + step) * fractal_bytes + m % 16 * 32,
                    *check = out_valid + (place - out);
            std::memcpy(place, padding, 32);
            std::memset(check, 1, 32);
            const uint64_t position = image.m_start + m, k = image.k_start / c0 + step;
            const uint64_t column = k % image.filter_w, row = k / image.filter_w % image.filter_h,
                           block = k / image.filter_w / image.filter_h;
            if (position >= across * down || block >= blocks) continue;
            const uint64_t y = position / across * image.stride_h + row * image.dilation_h,
                           x = position % across * image.stride_w + column * image.dilation_w;
            if (y < image.top || x < image.left || y - image.top >= image.h || x - image.left >= image.w) continue;
            const uint64_t at = ((block * image.h + y - image.top) * image.w + x - image.left) * 32;
            std::memcpy(place, in + at, 32);
            std::memcpy(check, in_valid + at, 32);
        }
    }
}

void Executor::fill_fractals(asc_local dst, uint32_t repeat, uint32_t blocks, uint32_t gap, uint64_t bits,
                             uint32_t dtype, int32_t line) {
    Core &core = running(line);
    const char *what = "InitConstValue";
    const uint32_t element = element_of(dtype, constants, what);
    if (dst.space != ASC_L1 && dst.space != ASC_L0A && dst.space != ASC_L0B)
        diagnostics_.fail(Rule::Space, text("%s in %s", what, name_of_space(dst.space)),
                          "it fills A1, B1, A2 or B2; in UB use Duplicate");
    if (repeat > 32767 || blocks > 32767 || gap > 32767)
        diagnostics_.fail(Rule::Cube, text("%s of %u times %u blocks", what, repeat, blocks), "each is at most 32767");
    if (repeat == 0 || blocks == 0) return;
    const uint64_t unit = dst.space == ASC_L1 ? 32 : fractal_bytes, each = blocks * unit, step = each + gap * unit;
    const Bytes to = bytes_of(dst, (repeat - 1) * step + each, what, "destination");
    if (dst.addr % unit)
        diagnostics_.fail(Rule::Alignment, text("%s at %s[0x%x]", what, name_of_space(dst.space), dst.addr));
    const uint32_t pipe = dst.space == ASC_L1 ? ASC_MTE2 : ASC_MTE1;
    core.clocks.issue(pipe);
    touch(core, pipe, to, true, what);
    count(what);
    Instr record = instr(Kind::Load, pipe);
    record.dtype = static_cast<uint8_t>(dtype);
    record.space = static_cast<uint8_t>(dst.space);
    record.bursts = repeat;
    record.burst_bytes = static_cast<uint32_t>(each);
    record.operands = 1;
    record.operand[0].addr = dst.addr;
    emit(record);
    if (!options_.compute) return;
    work(repeat * each / element);
    LocalMemory &memory = core.memory(dst.space);
    for (uint64_t i = 0; i < repeat; ++i) {
        const uint32_t begin = static_cast<uint32_t>(to.begin + i * step), end = begin + static_cast<uint32_t>(each);
        uint8_t *data = memory.data(begin, end), *valid = memory.valid(begin, end);
        for (uint64_t at = 0; at < each; at += element) std::memcpy(data + at, &bits, element);
        std::memset(valid, 1, each);
    }
}

}  // namespace sim
