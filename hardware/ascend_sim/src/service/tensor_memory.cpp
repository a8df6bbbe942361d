#include "tensor_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

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

uint8_t *map_poison(uint64_t bytes, uint8_t poison) {
    void *memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no room for the workspace");
    for (uint64_t done = 0; done < bytes; done += kPoisonBytes) {
        void *part = static_cast<uint8_t *>(memory) + done;
        if (mmap(part, kPoisonBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 poison_file(poison), 0) == MAP_FAILED)
            throw std::runtime_error("the workspace cannot be mapped");
    }
    return static_cast<uint8_t *>(memory);
}

}  // namespace

TensorMemory::TensorMemory(const Request &request, int descriptor) : data_(request.tensors.size(), nullptr) {
    if (!request.compute) return;
    const Mapping tensors = descriptor >= 0 ? map_tensors(descriptor) : Mapping{};
    for (size_t i = 0; i < data_.size(); ++i) {
        const TensorRequest &tensor = request.tensors[i];
        if (tensor.role == TensorRequest::Workspace) {
            data_[i] = take_workspace(tensor.bytes, request.poison);
        } else if (tensor.bytes > tensors.bytes || tensor.offset > tensors.bytes - tensor.bytes) {
            throw std::runtime_error("a tensor lies outside its memory");
        } else {
            data_[i] = tensors.start + tensor.offset;
            if (tensor.role == TensorRequest::Output && !request.keep)
                std::memset(data_[i], request.poison, tensor.bytes);
        }
    }
}

// A client sends the same memory with one request after another. It stays mapped, so that its pages are set up once.
TensorMemory::Mapping TensorMemory::map_tensors(int descriptor) {
    static Mapping mapped;
    static dev_t device;
    static ino_t inode;
    struct stat about{};
    if (fstat(descriptor, &about)) throw std::runtime_error("the tensors' memory cannot be read");
    const auto bytes = static_cast<uint64_t>(about.st_size);
    if (mapped.bytes == bytes && device == about.st_dev && inode == about.st_ino) return mapped;
    if (mapped.bytes) munmap(mapped.start, mapped.bytes);
    mapped = {};
    if (!bytes) return mapped;
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("the tensors' memory cannot be mapped");
    device = about.st_dev;
    inode = about.st_ino;
    return mapped = {static_cast<uint8_t *>(memory), bytes};
}

// Workspaces are mapped once for each poison and kept: mapping hundreds of megabytes takes longer than a small run.
uint8_t *TensorMemory::take_workspace(uint64_t bytes, uint8_t poison) {
    static std::map<std::pair<uint8_t, size_t>, Mapping> kept;
    bytes = (bytes + kPoisonBytes - 1) / kPoisonBytes * kPoisonBytes;
    if (!bytes) return nullptr;
    Mapping &workspace = kept[{poison, workspaces_.size()}];
    if (workspace.bytes < bytes) {
        if (workspace.bytes) munmap(workspace.start, workspace.bytes);
        workspace = {};
        workspace = {map_poison(bytes, poison), bytes};
    }
    workspaces_.push_back(workspace);
    return workspace.start;
}

TensorMemory::~TensorMemory() {
    // Drops what the run has written: these pages are poison again.
    for (const Mapping &workspace : workspaces_) madvise(workspace.start, workspace.bytes, MADV_DONTNEED);
}

}  // namespace sim
