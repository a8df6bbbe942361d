#include "tensor_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <stdexcept>

namespace sim {
namespace {

constexpr uint64_t kPoisonBytes = 4 << 20;

// A file full of poison, mapped copy-on-write as often as needed: untouched pages cost nothing.
int poison_file(uint8_t poison) {
    static std::map<uint8_t, int> files;
    const auto found = files.find(poison);
    if (found != files.end()) return found->second;
    const int file = memfd_create("poison", MFD_CLOEXEC);
    const std::vector<uint8_t> bytes(kPoisonBytes, poison);
    if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        throw std::runtime_error("cannot make the poison file");
    return files[poison] = file;
}

uint64_t size_of(int descriptor) {
    struct stat about{};
    if (fstat(descriptor, &about)) throw std::runtime_error("the tensors' memory cannot be read");
    return static_cast<uint64_t>(about.st_size);
}

}  // namespace

TensorMemory::TensorMemory(const Request &request, int descriptor) : data_(request.tensors.size(), nullptr) {
    if (!request.compute) return;
    const uint64_t size = descriptor >= 0 ? size_of(descriptor) : 0;
    uint8_t *base = nullptr;
    if (size) {
        void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (memory == MAP_FAILED) throw std::runtime_error("the tensors' memory cannot be mapped");
        mappings_.push_back({memory, size});
        base = static_cast<uint8_t *>(memory);
    }
    for (size_t i = 0; i < data_.size(); ++i) {
        const TensorRequest &tensor = request.tensors[i];
        if (tensor.role == TensorRequest::Workspace) {
            data_[i] = map_workspace(tensor.bytes, request.poison);
        } else if (tensor.bytes > size || tensor.offset > size - tensor.bytes) {
            throw std::runtime_error("a tensor lies outside its memory");
        } else {
            data_[i] = base + tensor.offset;
            if (tensor.role == TensorRequest::Output && !request.keep)
                std::memset(data_[i], request.poison, tensor.bytes);
        }
    }
}

uint8_t *TensorMemory::map_workspace(uint64_t bytes, uint8_t poison) {
    bytes = (bytes + kPoisonBytes - 1) / kPoisonBytes * kPoisonBytes;
    if (!bytes) return nullptr;
    void *memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no room for the workspace");
    mappings_.push_back({memory, bytes});
    for (uint64_t done = 0; done < bytes; done += kPoisonBytes) {
        void *part = static_cast<uint8_t *>(memory) + done;
        if (mmap(part, kPoisonBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 poison_file(poison), 0) == MAP_FAILED)
            throw std::runtime_error("the workspace cannot be mapped");
    }
    return static_cast<uint8_t *>(memory);
}

TensorMemory::~TensorMemory() {
    for (const Mapping &mapping : mappings_) munmap(mapping.start, mapping.bytes);
}

}  // namespace sim
