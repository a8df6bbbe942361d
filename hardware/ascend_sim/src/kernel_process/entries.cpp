// What kernel code calls before an access (assembly/guards.py). These calls stand between instructions of compiled code,
// which may have values in any register: all are kept, but for the two that hold the address and the number of bytes,
// which the compiler does not use. Flags are kept where they are in use. Nothing is kept on the stack, where kernel code
// could find it later.
#include <cstdint>

extern "C" __attribute__((aligned(16), visibility("hidden"))) uint64_t asc_kept_numbers[20], asc_kept_vectors[64];
uint64_t asc_kept_numbers[20], asc_kept_vectors[64];

// clang-format off
#define ENTRIES ENTRY("load", "", "", "0") ENTRY("store", "", "", "1") ENTRY_KEEPING_FLAGS

#if defined(__x86_64__)

#define VECTORS(DO)                                                                                                    \
    DO("0") DO("1") DO("2") DO("3") DO("4") DO("5") DO("6") DO("7") DO("8") DO("9") DO("10") DO("11") DO("12")         \
    DO("13") DO("14") DO("15")
#define NUMBERS(DO)                                                                                                    \
    DO("rax", "0") DO("rcx", "1") DO("rdx", "2") DO("rsi", "3") DO("rdi", "4") DO("r8", "5") DO("r9", "6")             \
    DO("rbx", "7") DO("r10", "8") DO("r11", "9")
#define SAVE_VECTOR(i) "movaps %xmm" i ", 16*" i "+asc_kept_vectors(%rip)\n"
#define LOAD_VECTOR(i) "movaps 16*" i "+asc_kept_vectors(%rip), %xmm" i "\n"
#define SAVE_NUMBER(name, i) "mov %" name ", 8*" i "+asc_kept_numbers(%rip)\n"
#define LOAD_NUMBER(name, i) "mov 8*" i "+asc_kept_numbers(%rip), %" name "\n"
// The address is in r11, the number of bytes in r10.
#define ARGUMENTS(is_store)                                                                                            \
    "mov 8*9+asc_kept_numbers(%rip), %rdi\n"                                                                           \
    "mov 8*8+asc_kept_numbers(%rip), %rsi\n"                                                                           \
    "mov %rbp, %rdx\n"                                                                                                 \
    "mov $" is_store ", %ecx\n"
#define ENTRY(name, save_flags, load_flags, is_store)                                                                  \
    asm(".globl asc_guard_" name "\n"                                                                                  \
        ".type asc_guard_" name ", @function\n"                                                                        \
        "asc_guard_" name ":\n"                                                                                        \
        "push %rbp\n"                                                                                                  \
        "mov %rsp, %rbp\n"                                                                                             \
        NUMBERS(SAVE_NUMBER)                                                                                           \
        save_flags                                                                                                     \
        "mov %rsp, %rbx\n"                                                                                             \
        "and $-16, %rsp\n"                                                                                             \
        ARGUMENTS(is_store)                                                                                            \
        "call asc_is_plain\n"                                                                                          \
        "test %al, %al\n"                                                                                              \
        "jne 1f\n"                                                                                                     \
        VECTORS(SAVE_VECTOR)                                                                                           \
        ARGUMENTS(is_store)                                                                                            \
        "call asc_check\n"                                                                                             \
        VECTORS(LOAD_VECTOR)                                                                                           \
        "1: mov %rbx, %rsp\n"                                                                                          \
        load_flags                                                                                                     \
        NUMBERS(LOAD_NUMBER)                                                                                           \
        "pop %rbp\n"                                                                                                   \
        "ret\n"                                                                                                        \
        ".size asc_guard_" name ", .-asc_guard_" name "\n");
#define ENTRY_KEEPING_FLAGS                                                                                            \
    ENTRY("load_keeping_flags", "pushf\n", "popf\n", "0")                                                              \
    ENTRY("store_keeping_flags", "pushf\n", "popf\n", "1")

#elif defined(__aarch64__)

#define VECTORS(DO)                                                                                                    \
    DO("0", "1") DO("2", "3") DO("4", "5") DO("6", "7") DO("8", "9") DO("10", "11") DO("12", "13") DO("14", "15")      \
    DO("16", "17") DO("18", "19") DO("20", "21") DO("22", "23") DO("24", "25") DO("26", "27") DO("28", "29")           \
    DO("30", "31")
#define NUMBERS(DO)                                                                                                    \
    DO("0", "1", "0") DO("2", "3", "2") DO("4", "5", "4") DO("6", "7", "6") DO("8", "9", "8") DO("10", "11", "10")     \
    DO("12", "13", "12") DO("18", "19", "14") DO("14", "15", "16")
#define SAVE_VECTOR(i, j) "stp q" i ", q" j ", [x16, 16*" i "]\n"
#define LOAD_VECTOR(i, j) "ldp q" i ", q" j ", [x16, 16*" i "]\n"
#define SAVE_NUMBERS(a, b, i) "stp x" a ", x" b ", [x16, 8*" i "]\n"
#define LOAD_NUMBERS(a, b, i) "ldp x" a ", x" b ", [x16, 8*" i "]\n"
#define PLACE_OF(what)                                                                                                 \
    "adrp x16, asc_kept_" what "\n"                                                                                    \
    "add x16, x16, :lo12:asc_kept_" what "\n"
// The address is in x15, the number of bytes in x14.
#define ARGUMENTS(is_store)                                                                                            \
    "ldp x1, x0, [x16, 8*16]\n"                                                                                        \
    "mov x2, x29\n"                                                                                                    \
    "mov w3, " is_store "\n"
// Flags are always kept, in a register that the functions which are called here keep: that costs little.
#define ENTRY(name, save_flags, load_flags, is_store)                                                                  \
    asm(".globl asc_guard_" name "\n"                                                                                  \
        ".type asc_guard_" name ", %function\n"                                                                        \
        "asc_guard_" name ":\n"                                                                                        \
        "stp x29, x30, [sp, -16]!\n"                                                                                   \
        "mov x29, sp\n"                                                                                                \
        PLACE_OF("numbers")                                                                                            \
        NUMBERS(SAVE_NUMBERS)                                                                                          \
        "mrs x19, nzcv\n"                                                                                              \
        ARGUMENTS(is_store)                                                                                            \
        "bl asc_is_plain\n"                                                                                            \
        "tbnz w0, 0, 1f\n"                                                                                             \
        PLACE_OF("vectors")                                                                                            \
        VECTORS(SAVE_VECTOR)                                                                                           \
        PLACE_OF("numbers")                                                                                            \
        ARGUMENTS(is_store)                                                                                            \
        "bl asc_check\n"                                                                                               \
        PLACE_OF("vectors")                                                                                            \
        VECTORS(LOAD_VECTOR)                                                                                           \
        "1: msr nzcv, x19\n"                                                                                           \
        PLACE_OF("numbers")                                                                                            \
        NUMBERS(LOAD_NUMBERS)                                                                                          \
        "ldp x29, x30, [sp], 16\n"                                                                                     \
        "ret\n"                                                                                                        \
        ".size asc_guard_" name ", .-asc_guard_" name "\n");
#define ENTRY_KEEPING_FLAGS

#endif

ENTRIES
