// Row-wise library functions on tiles of rows and columns.
#include "tiles.h"

#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/tile_numerics.h"

namespace sim {

namespace {
constexpr uint32_t copyable_tiles = movable | bit_of(ASC_I8) | bit_of(ASC_U8);

constexpr TileOp tile_ops[ASC_TILE_OPS] = {
    {"SoftMax", floats, true, true},
    {"LogSoftMax", floats, true, true},
    {"Sum", floats, true, true},
    {"Mean", floats, true, true},
    {"CumSum", floats, true, true},
    {"Broadcast", copyable_tiles, false, false},
    {"Pad", movable, false, false},
    {"UnPad", movable, false, false},
    {"LayerNorm", floats, true, true},
    {"RmsNorm", floats, true, true},
    {"TopK", floats, false, true},
    {"Sort", floats, false, true},
    {"Extract", floats, false, false},
    {"SimpleSoftMax", floats, true, true},
    {"SoftmaxFlash", floats, true, true},
    {"SoftmaxFlashV2", floats, true, true},
    {"AscendQuant", floats, false, true},
    {"AscendDequant", floats | bit_of(ASC_BF16), false, true},
    {"AscendAntiQuant", bit_of(ASC_F16) | bit_of(ASC_BF16), false, true},
    {"GroupNorm", floats, true, true},
    {"SelectWithBytesMask", floats, true, true},
};
constexpr uint32_t pairs = 32;  // pairs of value and index, 8 bytes each, in one row of Sort

// The permitted values of `axis`: a dimension, a count or an element type, depending on the function.
bool fits_axis(uint32_t op, const asc_tile &tile) {
    switch (op) {
        case ASC_CUMSUM:
        case ASC_BROADCAST: return tile.axis <= 1;
        case ASC_TOPK: return tile.axis != 0 && tile.axis <= tile.columns;
        case ASC_DEQUANT: return tile.axis == ASC_F32 || tile.axis == ASC_BF16 || tile.axis == ASC_U64;
        case ASC_ANTIQUANT: return tile.axis == ASC_I8 || tile.axis == ASC_I4;
        case ASC_GROUPNORM: return tile.axis != 0 && tile.columns % tile.axis == 0 && tile.rows % tile.valid_rows == 0;
        case ASC_SELECTBYTES: {
            const uint32_t bytes = tile.flags / 256;
            return tile.axis >= tile.columns && tile.axis <= capacity_of(ASC_UB) &&
                   (bytes == 1 || bytes == 2 || bytes == 4);
        }
        case ASC_SORT:
        case ASC_EXTRACT: return tile.columns == pairs;
        default: return true;
    }
}
}  // namespace

TileShape tile_shape(uint32_t op, const asc_tile &tile, uint32_t element) {
    const uint64_t rows = tile.rows, columns = tile.columns, block = 32 / element, all = rows * columns * element;
    TileShape shape;
    shape.dst = shape.src0 = all;
    switch (op) {
        case ASC_SOFTMAX:
        case ASC_LOGSOFTMAX:
            shape.dst1 = shape.dst2 = rows * 32;
            shape.optional_results = true;
            break;
        case ASC_SUM:
        case ASC_MEAN: shape.dst = rows * element; break;
        case ASC_CUMSUM:
            shape.dst1 = columns * element;
            shape.optional_results = true;
            break;
        case ASC_BROADCAST: shape.src0 = (tile.axis == 0 ? columns : rows) * element; break;
        case ASC_PAD: shape.dst = rows * (tile.flags % 256 + tile.valid_columns + tile.flags / 256) * element; break;
        case ASC_UNPAD: shape.dst = rows * tile.valid_columns * element; break;
        case ASC_LAYERNORM:
            shape.dst1 = shape.dst2 = rows * element;
            shape.src1 = shape.src2 = columns * element;
            break;
        case ASC_RMSNORM: shape.src1 = columns * element; break;
        case ASC_TOPK:
            shape.dst = rows * round_up(tile.axis, block) * element;
            shape.dst1 = rows * round_up(tile.axis, 8) * 4;
            shape.src1 = columns * 4;
            shape.optional_sources = true;
            break;
        case ASC_SORT:
            shape.dst = rows * columns * 8;
            shape.src1 = rows * columns * 4;
            break;
        case ASC_EXTRACT:
            shape.src0 = rows * columns * 8;
            shape.dst1 = rows * columns * 4;
            break;
        case ASC_SIMPLESOFTMAX: shape.src1 = shape.src2 = rows * 32; break;
        case ASC_SOFTMAXFLASH:
        case ASC_SOFTMAXFLASHV2:
            shape.dst1 = shape.dst2 = rows * 32;
            if (tile.flags & 2) shape.dst3 = shape.src1 = shape.src2 = rows * 32;
            break;
        case ASC_QUANT:
            shape.dst = rows * columns;
            shape.src1 = shape.src2 = columns * element;
            shape.optional_sources = true;
            break;
        case ASC_DEQUANT:
            shape.dst = rows * round_up(columns, block) * element;
            shape.src0 = rows * columns * 4;
            shape.src1 = columns * bytes_of_dtype(tile.axis);
            shape.optional_sources = true;
            break;
        case ASC_ANTIQUANT:
            shape.src0 = tile.axis == ASC_I4 ? divide_up(rows * columns, 2) : rows * columns;
            shape.src1 = shape.src2 = (tile.flags & 1 ? rows : columns) * element;
            shape.optional_sources = true;
            break;
        case ASC_GROUPNORM:
            shape.dst1 = shape.dst2 = rows * element;
            shape.src1 = shape.src2 = static_cast<uint64_t>(tile.valid_rows) * tile.axis * element;
            break;
        case ASC_SELECTBYTES: shape.src1 = rows * tile.axis * (tile.flags / 256); break;
        default: break;
    }
    return shape;
}

void Executor::tile_function(uint32_t op, uint32_t dtype, asc_local dst, asc_local dst1, asc_local dst2, asc_local dst3,
                             asc_local src0, asc_local src1, asc_local src2, asc_local tmp, asc_tile tile,
                             uint64_t scalar, int32_t line) {
    Core &core = running(line);
    if (op >= ASC_TILE_OPS) diagnostics_.fail(Rule::Protocol, "an unknown tile function");
    const TileOp &spec = tile_ops[op];
    const uint32_t element = element_of(dtype, spec.dtypes, spec.name), most = capacity_of(ASC_UB);
    if (tile.rows == 0 || tile.columns == 0) return;
    if (tile.rows > most || tile.columns > most || tile.valid_rows > tile.rows || tile.valid_columns > tile.columns ||
        tile.flags > 0xffff) {
        diagnostics_.fail(Rule::OutOfBounds, text("%s of %u x %u elements, of which %u x %u are used", spec.name,
                                                  tile.rows, tile.columns, tile.valid_rows, tile.valid_columns));
    }
    if (tile.valid_rows == 0) tile.valid_rows = tile.rows;
    if (tile.valid_columns == 0) tile.valid_columns = tile.columns;
    if (!fits_axis(op, tile)) {
        diagnostics_.fail(Rule::Repeat, text("%s with %u for %u columns", spec.name, tile.axis, tile.columns),
                          "check the axis, k, or how the tensor is divided");
    }
    if (spec.aligned_rows && static_cast<uint64_t>(tile.columns) * element % 32) {
        diagnostics_.fail(Rule::Alignment, text("%s has rows of %u elements, which are not whole blocks of 32 bytes",
                                                spec.name, tile.columns));
    }

    const TileShape shape = tile_shape(op, tile, element);
    const bool floats_beside = (tile.flags & 1) && is_softmax(op);
    TileBytes bytes;
    bytes.dst = ub_bytes(dst, shape.dst, 32, spec.name, "destination");
    bytes.src0 = ub_bytes(src0, shape.src0, 32, spec.name, "source");
    const auto result = [&](const asc_local &tensor, uint64_t size) {
        if (size == 0 || (shape.optional_results && tensor.bytes == 0)) return Bytes{ASC_UB, 0, 0};
        return ub_bytes(tensor, size, 32, spec.name, "second result");
    };
    bytes.dst1 = result(dst1, shape.dst1);
    bytes.dst2 = result(dst2, shape.dst2);
    bytes.dst3 = result(dst3, shape.dst3);
    const auto source = [&](const asc_local &tensor, uint64_t size, const char *role) {
        if (size == 0 || (shape.optional_sources && tensor.bytes == 0)) return Bytes{ASC_UB, 0, 0};
        return ub_bytes(tensor, size, 32, spec.name, role);
    };
    bytes.src1 = source(src1, shape.src1, "second source");
    bytes.src2 = source(src2, shape.src2, "third source");
    core.clocks.issue(ASC_V);
    const Bytes used[] = {bytes.dst, bytes.src0, bytes.dst1, bytes.dst2, bytes.dst3, bytes.src1, bytes.src2};
    take_tmp(core, tmp, spec.needs_tmp ? tile_tmp_bytes(op, tile) : 0, used, 7, spec.name);
    for (const Bytes &range : {bytes.src0, bytes.src1, bytes.src2}) touch(core, ASC_V, range, false, spec.name);
    for (const Bytes &range : {bytes.dst, bytes.dst1, bytes.dst2, bytes.dst3})
        touch(core, ASC_V, range, true, spec.name);
    count(spec.name);
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = Family::Tile;
    record.op = static_cast<uint16_t>(op);
    record.dtype = static_cast<uint8_t>(dtype);
    record.elements = tile.rows * tile.columns;
    record.repeats = static_cast<uint32_t>(tile.rows * divide_up(static_cast<uint64_t>(tile.columns) * element, 256));
    record.a = tile.rows;
    if (op == ASC_SORT) record.b = record.c = tile.flags ? record.elements : tile.columns;
    if (op == ASC_TOPK) record.b = tile.columns, record.c = tile.axis;
    record.operands = 2;
    record.operand[0] = {dst.addr, 1, 8};
    record.operand[1] = {src0.addr, 1, 8};
    emit(record);
    if (!options_.compute) return;
    work(record.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    uint32_t end = 0;
    for (const Bytes &range : used) end = std::max(end, range.end);
    TileRun run = {op, dtype, element, tile, scalar, floats_beside, bytes, ub.data(0, end), ub.valid(0, end)};
    run_tile(run);
}

uint64_t tile_tmp_bytes(uint32_t op, const asc_tile &tile) {
    const uint64_t row = round_up(static_cast<uint64_t>(tile.columns) * 4, 256);
    switch (op) {
        case ASC_SUM:
        case ASC_MEAN: return 256;
        case ASC_CUMSUM: return row;
        case ASC_TOPK: return 4 * row;
        case ASC_SORT: return tile.flags & 1 ? static_cast<uint64_t>(tile.rows) * pairs * 8 : 0;
        case ASC_QUANT:
        case ASC_DEQUANT:
        case ASC_ANTIQUANT:
        case ASC_SELECTBYTES: return 256;
        default: return row + 256;
    }
}

}  // namespace sim
