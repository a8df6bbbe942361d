// The program that a bundle's host code is linked with.
//
//   host describe   writes the operators, their tensors and attributes and the tiling structs to the file `response`
//   host tile       reads a call from the file `request`, runs the tiling function, writes what it set to `response`
//
// Both files are lines of words. Whatever the program writes is checked by who reads it.
#include <fstream>

#include "kernel_gym_host.h"

namespace kernel_gym_host {

inline uint64_t &platform(int which) {
    static uint64_t figures[4] = {40, 20, 196352, 524032};
    return figures[which & 3];
}

inline std::string hex(const void *data, size_t size) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < size; ++i) {
        const unsigned char byte = static_cast<const unsigned char *>(data)[i];
        text += digits[byte >> 4], text += digits[byte & 15];
    }
    return text.empty() ? "-" : text;
}

inline std::string unhex(const std::string &text) {
    std::string bytes;
    for (size_t i = 0; i + 1 < text.size(); i += 2)
        bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    return bytes;
}

inline void describe(std::ostream &out) {
    for (const ops::OpDef &op : ops::operators()) {
        out << "op " << op.op_name << " " << (op.core.tiling ? 1 : 0) << "\n";
        const auto parameters = [&out](const char *role, const auto &items) {
            for (const auto &item : items) {
                out << role << " " << item->name << " " << item->option;
                for (const ge::DataType type : item->types) out << " " << static_cast<int>(type);
                out << "\n";
            }
        };
        parameters("input", op.inputs);
        parameters("output", op.outputs);
        for (const auto &attr : op.attrs) out << "attr " << attr->name << " " << attr->kind << "\n";
        for (const std::string &soc : op.core.socs) out << "soc " << soc << "\n";
    }
    for (const auto &[op, text] : optiling::tiling_definitions())
        out << "tiling " << op << " " << optiling::tiling_names()[op] << " " << hex(text.data(), text.size()) << "\n";
}

inline gert::Shape read_shape(std::istream &words) {
    size_t count = 0;
    gert::Shape shape;
    words >> count;
    for (int64_t size; count-- && words >> size;) shape.AppendDim(size);
    return shape;
}

inline void read_tensor(std::istream &words, std::vector<std::unique_ptr<gert::Tensor>> &tensors,
                        std::vector<std::unique_ptr<gert::CompileTimeTensorDesc>> &descs) {
    int type = 0;
    words >> type;
    if (type < 0) {  // an optional input that was not passed
        tensors.emplace_back(), descs.emplace_back();
        return;
    }
    const auto dtype = static_cast<ge::DataType>(type);
    tensors.emplace_back(new gert::Tensor(read_shape(words), dtype));
    descs.emplace_back(new gert::CompileTimeTensorDesc(dtype));
}

template <class T>
std::vector<T> read_list(std::istream &words) {
    std::vector<T> values;
    std::string word;
    while (words >> word) values.push_back(static_cast<T>(std::strtod(word.c_str(), nullptr)));
    return values;
}

inline void read_attr(std::istream &words, gert::RuntimeAttrs &attrs) {
    std::string kind, word;
    words >> kind;
    if (kind == "ints") return attrs.add_list(read_list<int64_t>(words));
    if (kind == "floats") return attrs.add_list(read_list<float>(words));
    if (kind == "bools") {
        const std::vector<int64_t> truths = read_list<int64_t>(words);
        return attrs.add_list(std::vector<uint8_t>(truths.begin(), truths.end()));
    }
    words >> word;
    if (kind == "int") attrs.add_int(std::strtoll(word.c_str(), nullptr, 10));
    else if (kind == "float") attrs.add_float(std::strtof(word.c_str(), nullptr));
    else if (kind == "bool") attrs.add_bool(word == "1");
    else attrs.add_string(unhex(word == "-" ? "" : word));
}

inline int tile(std::istream &in, std::ostream &out) {
    gert::TilingContext context;
    for (std::string line, key; std::getline(in, line);) {
        std::istringstream words(line);
        words >> key;
        if (key == "op") words >> context.name;
        else if (key == "platform")
            for (int i = 0; i < 4; ++i) words >> platform(i);
        else if (key == "input") read_tensor(words, context.inputs, context.input_descs);
        else if (key == "output") read_tensor(words, context.outputs, context.output_descs);
        else if (key == "attr") read_attr(words, context.attrs);
    }
    for (const ops::OpDef &op : ops::operators()) {
        if (op.op_name != context.name || !op.core.tiling) continue;
        out << "status " << op.core.tiling(&context) << "\n";
        out << "blocks " << context.GetBlockDim() << "\nkey " << context.GetTilingKey() << "\nworkspace";
        for (const size_t size : context.workspaces()) out << " " << size;
        const gert::TilingData *data = context.GetRawTilingData();
        out << "\ntiling " << hex(data->GetData(), std::min(data->GetDataSize(), data->GetCapacity())) << "\n";
        return 0;
    }
    return 1;
}

}  // namespace kernel_gym_host

// What PlatformAscendC asks for.
extern "C" uint64_t asc_platform(int32_t which) { return kernel_gym_host::platform(which); }

int main(int count, char **words) {
    std::ofstream out("response");
    if (count > 1 && std::string(words[1]) == "describe") {
        kernel_gym_host::describe(out);
        return 0;
    }
    std::ifstream in("request");
    return kernel_gym_host::tile(in, out);
}
