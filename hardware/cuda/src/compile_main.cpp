// cuda-compile: compiles device code with NVRTC. Runs confined, because the source is untrusted.
//
//   cuda-compile LIBNVRTC SOURCE CUBIN PTX NAMES [NAME]... -- [OPTION]...
//
// Writes the code to CUBIN, the assembly that it was made of to PTX and, line by line, the mangled name of each NAME (an expression such as `f<float>`) to
// NAMES. The compiler's messages go to the standard output. Exit status 0: compiled; 1: rejected; 3: NVRTC failed.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Program = struct _nvrtcProgram *;

[[noreturn]] void fail(const std::string &why) {
    std::printf("%s\n", why.c_str());
    std::exit(3);
}

struct Nvrtc {
    int (*create)(Program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*add_name)(Program, const char *);
    int (*compile)(Program, int, const char *const *);
    int (*log_size)(Program, size_t *);
    int (*log)(Program, char *);
    int (*cubin_size)(Program, size_t *);
    int (*cubin)(Program, char *);
    int (*ptx_size)(Program, size_t *);
    int (*ptx)(Program, char *);
    int (*lowered)(Program, const char *, const char **);

    explicit Nvrtc(const char *path) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (!library) fail(dlerror());
        find("nvrtcCreateProgram", &create);
        find("nvrtcAddNameExpression", &add_name);
        find("nvrtcCompileProgram", &compile);
        find("nvrtcGetProgramLogSize", &log_size);
        find("nvrtcGetProgramLog", &log);
        find("nvrtcGetCUBINSize", &cubin_size);
        find("nvrtcGetCUBIN", &cubin);
        find("nvrtcGetPTXSize", &ptx_size);
        find("nvrtcGetPTX", &ptx);
        find("nvrtcGetLoweredName", &lowered);
    }

private:
    template <class F> void find(const char *name, F *function) {
        *function = reinterpret_cast<F>(dlsym(library, name));
        if (!*function) fail(std::string("the library has no ") + name);
    }

    void *library;
};

void check(int result, const char *what) {
    if (result) fail(std::string(what) + " failed with " + std::to_string(result));
}

std::string read(const char *path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void print_log(const Nvrtc &nvrtc, Program program) {
    size_t size = 0;
    if (nvrtc.log_size(program, &size) || size < 2) return;
    std::string words(size, '\0');
    nvrtc.log(program, words.data());
    std::fwrite(words.data(), 1, std::strlen(words.c_str()), stdout);
}

void write(const Nvrtc &nvrtc, Program program, const std::vector<const char *> &names, char **argv) {
    size_t size = 0;
    check(nvrtc.cubin_size(program, &size), "nvrtcGetCUBINSize");
    std::string cubin(size, '\0');
    check(nvrtc.cubin(program, cubin.data()), "nvrtcGetCUBIN");
    std::ofstream(argv[3], std::ios::binary) << cubin;
    check(nvrtc.ptx_size(program, &size), "nvrtcGetPTXSize");
    std::string ptx(size, '\0');
    check(nvrtc.ptx(program, ptx.data()), "nvrtcGetPTX");
    std::ofstream(argv[4], std::ios::binary) << ptx.c_str();
    std::ofstream list(argv[5]);
    for (const char *name : names) {
        const char *lowered = "";
        check(nvrtc.lowered(program, name, &lowered), "nvrtcGetLoweredName");
        list << lowered << '\n';
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 7) fail("usage: cuda-compile LIBNVRTC SOURCE CUBIN PTX NAMES [NAME]... -- [OPTION]...");
    std::vector<const char *> names, options;
    int at = 6;
    for (; at < argc && std::strcmp(argv[at], "--"); ++at) names.push_back(argv[at]);
    for (++at; at < argc; ++at) options.push_back(argv[at]);
    const Nvrtc nvrtc(argv[1]);
    const std::string source = read(argv[2]);
    Program program = nullptr;
    check(nvrtc.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
    for (const char *name : names) check(nvrtc.add_name(program, name), "nvrtcAddNameExpression");
    const int result = nvrtc.compile(program, static_cast<int>(options.size()), options.data());
    print_log(nvrtc, program);
    if (result) return result == 6 || result == 8 ? 1 : 3;  // NVRTC_ERROR_COMPILATION, ..._NAME_EXPRESSION...
    write(nvrtc, program, names, argv);
    return 0;
}
