#include "request.h"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "protocol/ring.h"

namespace sim {
namespace {

template <class T>
T read(std::istringstream &words) {
    T value;
    if (!(words >> value)) throw std::runtime_error("expected another word");
    return value;
}

template <class T>
std::vector<T> read_all(std::istringstream &words) {
    std::vector<T> values;
    while (words >> std::ws && !words.eof()) values.push_back(read<T>(words));
    return values;
}

// Streams cannot parse hexadecimal floats.
double read_float(std::istringstream &words) { return std::stod(read<std::string>(words)); }

std::string rest_of(std::istringstream &words) {
    std::string text;
    std::getline(words >> std::ws, text);
    return text;
}

std::vector<BlockOperations> read_operations(const std::string &path) {
    std::ifstream file(path);
    std::vector<BlockOperations> blocks;
    for (BlockOperations block;
         file >> block.where >> block.branches >> block.integer >> block.floats >> block.divisions;)
        if (block.where < Ring::COVERED_BYTES) blocks.push_back(block);
    if (!file.eof()) throw std::runtime_error("cannot read it");
    return blocks;
}

std::vector<uint64_t> read_functions(const std::string &path) {
    std::ifstream file(path);
    std::vector<uint64_t> places;
    for (uint64_t where; file >> where;)
        if (where < Ring::COVERED_BYTES) places.push_back(where);
    if (!file.eof()) throw std::runtime_error("cannot read it");
    return places;
}

bool read_mode(std::istringstream &words) {
    const auto mode = read<std::string>(words);
    if (mode != "compute" && mode != "records") throw std::runtime_error("mode is compute or records");
    return mode == "compute";
}

TensorRequest read_tensor(std::istringstream &words) {
    static const std::map<std::string, TensorRequest::Role> roles = {
        {"input", TensorRequest::Input}, {"output", TensorRequest::Output}, {"workspace", TensorRequest::Workspace}};
    TensorRequest tensor;
    tensor.role = roles.at(read<std::string>(words));
    tensor.dtype = read<uint32_t>(words);
    tensor.offset = read<uint64_t>(words);
    tensor.bytes = read<uint64_t>(words);
    const auto rank = read<uint32_t>(words);
    for (uint32_t i = 0; i < rank; ++i) tensor.shape.push_back(read<int64_t>(words));
    return tensor;
}

void read_line(Request &request, const std::string &key, std::istringstream &words) {
    if (key == "run") return;
    if (key == "so") request.code = rest_of(words);
    else if (key == "operations") request.operations = read_operations(rest_of(words));
    else if (key == "functions") request.functions = read_functions(rest_of(words));
    else if (key == "mode") request.compute = read_mode(words);
    else if (key == "poison") request.poison = static_cast<uint8_t>(read<unsigned>(words));
    else if (key == "auto_sync") request.auto_sync = read<unsigned>(words) != 0;
    else if (key == "keep") request.keep = read<unsigned>(words) != 0;
    else if (key == "loops") request.loops = read<unsigned>(words) != 0;
    else if (key == "seed") request.seed = read<uint64_t>(words);
    else if (key == "key") request.key = {read<uint64_t>(words), read<uint64_t>(words)};
    else if (key == "timeout_ms") request.timeout_ms = read<int>(words);
    else if (key == "budget") request.budget = read<uint64_t>(words);
    else if (key == "effort") request.effort = read<uint64_t>(words);
    else if (key == "trace") request.trace = rest_of(words);
    else if (key == "log") request.log = rest_of(words);
    else if (key == "tensor") request.tensors.push_back(read_tensor(words));
    else if (key == "numbers") request.numbers = read_all<uint32_t>(words);
    else if (key == "scratch") request.scratch = read_all<uint32_t>(words);
    else if (key == "continues") request.continues = read<unsigned>(words) != 0;
    else if (key == "int") request.ints.push_back(read<int64_t>(words));
    else if (key == "float") request.floats.push_back(read_float(words));
    else if (key == "chip") {
        const auto name = read<std::string>(words);
        request.chip.emplace_back(name, rest_of(words));
    } else throw std::runtime_error("unknown key");
}

}  // namespace

Request parse_request(const std::string &text) {
    Request request;
    std::istringstream lines(text), words;
    for (std::string line; std::getline(lines, line);) {
        words.clear();
        words.str(line);
        try {
            read_line(request, read<std::string>(words), words);
        } catch (const std::exception &error) {
            throw std::runtime_error("bad request line '" + line + "': " + error.what());
        }
    }
    return request;
}

}  // namespace sim
