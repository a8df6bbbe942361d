// What kernel code calls before an access (assembly/guards.py). These calls stand between instructions of compiled code,
// which may have values in any register: all are kept, but for the two that hold the address and the number of bytes,
// which the compiler does not use. Flags are kept where they are in use. Vectors are not kept on the stack, where they would
// leave zeros.
#include <cstdint>

extern "C" __attribute__((aligned(16), visibility("hidden"))) uint8_t asc_kept_vectors[512];
uint8_t asc_kept_vectors[512];

#define ENTRIES ENTRY("load", "", "", "0") ENTRY("store", "", "", "1") ENTRY_KEEPING_FLAGS

#if defined(__x86_64__)

#define VECTORS(DO)                                                                                                    \
    DO("0") DO("1") DO("2") DO("3") DO("4") DO("5") DO("6") DO("7") DO("8") DO("9") DO("10") DO("11") DO("12") DO("13") \
    DO("14") DO("15")
#define SAVE_VECTOR(i) "movaps %xmm" i ", 16*" i "+asc_kept_vectors(%rip)\n"
#define LOAD_VECTOR(i) "movaps 16*" i "+asc_kept_vectors(%rip), %xmm" i "\n"
// The address is in r11, the number of bytes in r10.
#define ENTRY(name, save_flags, load_flags, is_store)                                                                  \
    asm(".globl asc_guard_" name "\n.type asc_guard_" name ", @function\nasc_guard_" name ":\n"                        \
        "push %rbp\nmov %rsp, %rbp\n" save_flags                                                                       \
        "push %rax\npush %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %rbx\npush %r10\npush %r11\n"  \
        "mov %rsp, %rbx\nmov %r11, %rdi\nmov %r10, %rsi\nmov %rbp, %rdx\nmov $" is_store ", %ecx\nand $-16, %rsp\n"    \
        "call asc_is_plain\ntest %al, %al\njne 1f\n"                                                                   \
        VECTORS(SAVE_VECTOR) "mov (%rbx), %rdi\nmov 8(%rbx), %rsi\nmov %rbp, %rdx\nmov $" is_store  \
        ", %ecx\ncall asc_check\n" VECTORS(LOAD_VECTOR)                                                                \
        "1: mov %rbx, %rsp\n"                                                                                          \
        "pop %r11\npop %r10\npop %rbx\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\npop %rax\n" load_flags \
        "pop %rbp\nret\n.size asc_guard_" name ", .-asc_guard_" name "\n");
#define ENTRY_KEEPING_FLAGS                                                                                            \
    ENTRY("load_keeping_flags", "pushf\n", "popf\n", "0") ENTRY("store_keeping_flags", "pushf\n", "popf\n", "1")

#elif defined(__aarch64__)

#define VECTORS(DO)                                                                                                    \
    DO("0", "1") DO("2", "3") DO("4", "5") DO("6", "7") DO("8", "9") DO("10", "11") DO("12", "13") DO("14", "15")      \
    DO("16", "17") DO("18", "19") DO("20", "21") DO("22", "23") DO("24", "25") DO("26", "27") DO("28", "29")           \
    DO("30", "31")
#define SAVE_VECTOR(i, j) "stp q" i ", q" j ", [x16, 16*" i "]\n"
#define LOAD_VECTOR(i, j) "ldp q" i ", q" j ", [x16, 16*" i "]\n"
#define VECTORS_KEPT "adrp x16, asc_kept_vectors\nadd x16, x16, :lo12:asc_kept_vectors\n"
// The address is in x15, the number of bytes in x14. Flags are always kept: that costs little.
#define ENTRY(name, save_flags, load_flags, is_store)                                                                  \
    asm(".globl asc_guard_" name "\n.type asc_guard_" name ", %function\nasc_guard_" name ":\n"                        \
        "stp x29, x30, [sp, -16]!\nmov x29, sp\n"                                                                      \
        "stp x0, x1, [sp, -16]!\nstp x2, x3, [sp, -16]!\nstp x4, x5, [sp, -16]!\nstp x6, x7, [sp, -16]!\n"             \
        "stp x8, x9, [sp, -16]!\nstp x10, x11, [sp, -16]!\nstp x12, x13, [sp, -16]!\nstp x18, x19, [sp, -16]!\n"       \
        "stp x14, x15, [sp, -16]!\nmrs x19, nzcv\n"                                                                    \
        "mov x0, x15\nmov x1, x14\nmov x2, x29\nmov w3, " is_store "\nbl asc_is_plain\ntbnz w0, 0, 1f\n"               \
        "ldp x1, x0, [sp]\nmov x2, x29\nmov w3, " is_store "\n" VECTORS_KEPT VECTORS(SAVE_VECTOR)                      \
        "bl asc_check\n" VECTORS_KEPT VECTORS(LOAD_VECTOR)                                                      \
        "1: msr nzcv, x19\nldp x14, x15, [sp], 16\nldp x18, x19, [sp], 16\nldp x12, x13, [sp], 16\n"                   \
        "ldp x10, x11, [sp], 16\nldp x8, x9, [sp], 16\nldp x6, x7, [sp], 16\nldp x4, x5, [sp], 16\n"                   \
        "ldp x2, x3, [sp], 16\nldp x0, x1, [sp], 16\nldp x29, x30, [sp], 16\nret\n"                                    \
        ".size asc_guard_" name ", .-asc_guard_" name "\n");
#define ENTRY_KEEPING_FLAGS

#endif

ENTRIES
