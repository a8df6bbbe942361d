"""Assembly with calls of the guard: what is checked, what needs no check, and what is refused, on both machines."""

from __future__ import annotations

import pytest

from kernel_gym.hardware.ascend_sim.assembly.guards import Computed, guarded
from kernel_gym.hardware.ascend_sim.assembly.instructions import Refused

MACHINES = ("x86_64", "aarch64")
BEGIN = {"x86_64": "pushq %rbp;movq %rsp, %rbp;subq $32, %rsp", "aarch64": "stp x29, x30, [sp, -48]!;mov x29, sp"}
END = {"x86_64": "leave;ret", "aarch64": "ldp x29, x30, [sp], 48;ret"}
COUNT = {"x86_64": "call __sanitizer_cov_trace_pc@PLT", "aarch64": "bl __sanitizer_cov_trace_pc"}
JUMP = {"x86_64": "jmp", "aarch64": "b"}
ADD = {"x86_64": "addl $1, %eax", "aarch64": "add w0, w0, 1"}
COMMENT = {"x86_64": "\t# ", "aarch64": "\t// "}


def lines(instructions: str, machine: str) -> str:
    """Return instructions, which are separated by semicolons, as the compiler writes them; each has a number."""
    written = []
    for number, line in enumerate(filter(None, instructions.split(";")), 1):
        name, _, operands = line.strip().partition(" ")
        is_label = line.endswith(":")
        written.append(line if is_label else f"\t{name}\t{operands}{COMMENT[machine]}{number}\t[c=4 l=4]  *kind")
    return "\n".join(written)


def function(body: str, machine: str, name: str = "f", begin: str | None = None, end: str | None = None) -> str:
    parts = BEGIN[machine] if begin is None else begin, body, END[machine] if end is None else end
    text = lines(";".join(filter(None, parts)), machine)
    return f"\t.text\n\t.globl\t{name}\n\t.type\t{name}, %function\n{name}:\n{text}\n\t.size\t{name}, .-{name}\n"


def checks(body: str, machine: str, **more: str) -> list[str]:
    """Return the calls of the guard that are inserted, each with its address and its number of bytes."""
    text = guarded(function(body, machine, **more), machine).text.splitlines()
    places = [at for at, line in enumerate(text) if "asc_guard" in line]
    return [" ".join(" ".join(text[at - 2 : at + 1]).replace("\t", " ").split()) for at in places]


CHECKED = [
    ("x86_64", "movl (%rax), %eax", ["leaq (%rax), %r11 movl $4, %r10d call asc_guard_load@PLT"]),
    ("x86_64", "movq %rdx, 8(%rax,%rcx,4)", ["leaq 8(%rax,%rcx,4), %r11 movl $8, %r10d call asc_guard_store@PLT"]),
    ("x86_64", "movzbl (%rax), %eax", ["leaq (%rax), %r11 movl $1, %r10d call asc_guard_load@PLT"]),
    ("x86_64", "movss (%rax), %xmm0", ["leaq (%rax), %r11 movl $4, %r10d call asc_guard_load@PLT"]),
    ("x86_64", "movups %xmm0, (%rax)", ["leaq (%rax), %r11 movl $16, %r10d call asc_guard_store@PLT"]),
    (
        "x86_64",
        "addl $1, (%rax)",
        [
            "leaq (%rax), %r11 movl $4, %r10d call asc_guard_load@PLT",
            "leaq (%rax), %r11 movl $4, %r10d call asc_guard_store@PLT",
        ],
    ),
    ("x86_64", "movl TABLE(%rip), %eax", ["leaq TABLE(%rip), %r11 movl $4, %r10d call asc_guard_load@PLT"]),
    ("x86_64", "movl ($table)(%rip), %eax", ["leaq ($table)(%rip), %r11 movl $4, %r10d call asc_guard_load@PLT"]),
    ("x86_64", "movq %rax, 8(%rbp)", ["leaq 8(%rbp), %r11 movl $8, %r10d call asc_guard_store@PLT"]),
    ("x86_64", "movq %rax, -4(%rbp)", ["leaq -4(%rbp), %r11 movl $8, %r10d call asc_guard_store@PLT"]),
    ("x86_64", "movq 16(%rbp), %rax", ["leaq 16(%rbp), %r11 movl $8, %r10d call asc_guard_load@PLT"]),
    ("x86_64", "movq %rax, -40(%rbp)", ["leaq -40(%rbp), %r11 movl $8, %r10d call asc_guard_store@PLT"]),
    ("x86_64", "movq %rax, 32(%rsp)", ["leaq 32(%rsp), %r11 movl $8, %r10d call asc_guard_store@PLT"]),
    (
        "x86_64",
        "cmpl %eax, %edx;sete (%rcx)",
        ["leaq (%rcx), %r11 movl $1, %r10d call asc_guard_store_keeping_flags@PLT"],
    ),
    (
        "x86_64",
        "cmpl %eax, %edx;movl (%rcx), %esi;jne .L2;.L2:",
        ["leaq (%rcx), %r11 movl $4, %r10d call asc_guard_load_keeping_flags@PLT"],
    ),
    ("aarch64", "ldr w0, [x1]", ["add x15, x1, 0 mov w14, 4 bl asc_guard_load"]),
    ("aarch64", "strh w0, [x1, 6]", ["add x15, x1, 6 mov w14, 2 bl asc_guard_store"]),
    ("aarch64", "ldr x0, [x1, x2, lsl 3]", ["add x15, x1, x2, lsl 3 mov w14, 8 bl asc_guard_load"]),
    ("aarch64", "ldrsw x0, [x1, w2, sxtw 2]", ["add x15, x1, w2, sxtw 2 mov w14, 4 bl asc_guard_load"]),
    ("aarch64", "stp q0, q1, [x0, 32]", ["add x15, x0, 32 mov w14, 32 bl asc_guard_store"]),
    ("aarch64", "ldr d0, [x0, #:lo12:TABLE]", ["add x15, x0, :lo12:TABLE mov w14, 8 bl asc_guard_load"]),
    ("aarch64", "ldr w0, [x1, 8196]", ["add x15, x15, 2, lsl 12 mov w14, 4 bl asc_guard_load"]),
    ("aarch64", "str x0, [sp, 8]", ["add x15, sp, 8 mov w14, 8 bl asc_guard_store"]),
    ("aarch64", "str x0, [sp, 48]", ["add x15, sp, 48 mov w14, 8 bl asc_guard_store"]),
    ("aarch64", "stp x0, x1, [sp, 40]", ["add x15, sp, 40 mov w14, 16 bl asc_guard_store"]),
    ("aarch64", "st1 {v0.16b - v1.16b}, [x0]", ["mov x15, x0 mov w14, 32 bl asc_guard_store"]),
]  # fmt: skip

FREE = [
    ("x86_64", "movq %rax, -8(%rbp);movl -32(%rbp), %eax;movq %rax, 24(%rsp)"),
    ("x86_64", "movss .LC0(%rip), %xmm0;movq f@GOTPCREL(%rip), %rax;leaq 8(%rax,%rdx), %rcx"),
    ("x86_64", "movq %rsp, %rcx;cltq;nop;addl %eax, %edx"),
    ("x86_64", "call ($f)@PLT;call ($f);leaq ($table)(%rip), %rax;movq ($table)@GOTPCREL(%rip), %rax"),
    ("aarch64", "str x0, [sp, 16];ldr w0, [sp, 44];stp x0, x1, [sp, 32]"),
    ("aarch64", "add x0, sp, 16;mov x1, sp;adrp x2, TABLE;add x2, x2, :lo12:TABLE"),
]

REFUSED = [
    ("x86_64", "call *%rax", "through a pointer"),
    ("x86_64", "jmp *%rax", "through a pointer"),
    ("x86_64", "call __x86_indirect_thunk_rax@PLT;subq %rdx, %rsp", "changes its stack"),
    ("x86_64", "movq %rax, %rbp", "changes its stack"),
    ("x86_64", "leaq 8(%rax), %rsp", "changes its stack"),
    ("x86_64", "movl %eax, %r11d", "changes its stack"),
    ("x86_64", "pushq %rax", "cannot be checked"),
    ("x86_64", "popq %rbp", "changes its stack"),
    ("x86_64", "ret", "cannot be checked"),
    ("x86_64", "leave", "cannot be checked"),
    ("x86_64", "leave;.L2:;ret", "cannot be checked"),
    ("x86_64", "rep stosq", "cannot be checked"),
    ("x86_64", "syscall", "cannot be checked"),
    ("x86_64", "rdtsc", "cannot be checked"),
    ("x86_64", "movl %fs:0, %eax", "cannot be checked"),
    ("x86_64", "fldt (%rax)", "long double"),
    ("x86_64", "xchgq %rax, (%rdx)", "cannot be checked"),
    ("aarch64", "blr x0", "through a pointer"),
    ("aarch64", "br x0", "through a pointer"),
    ("aarch64", "ret x1", "through a pointer"),
    ("aarch64", "ret", "through a pointer"),
    ("aarch64", "sub sp, sp, x0", "changes its stack"),
    ("aarch64", "mov sp, x0", "changes its stack"),
    ("aarch64", "mov x30, x0", "changes its stack"),
    ("aarch64", "ldr x30, [x0]", "changes its stack"),
    ("aarch64", "ldp x0, x29, [x1]", "changes its stack"),
    ("aarch64", "add x15, x0, 1", "changes its stack"),
    ("aarch64", "ldr x0, [x1], 8", "cannot be checked"),
    ("aarch64", "ldr x0, [x1, 8]!", "cannot be checked"),
    ("aarch64", "ldp x29, x30, [sp], 64;ret", "changes its stack"),
    ("aarch64", "mrs x0, tpidr_el0", "cannot be checked"),
    ("aarch64", "svc 0", "cannot be checked"),
    ("aarch64", "ldxr x0, [x1]", "cannot be checked"),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "body", "expected"), CHECKED)
def test_accesses_to_computed_places_are_checked(machine: str, body: str, expected: list[str]) -> None:
    assert checks(body, machine) == expected


@pytest.mark.parametrize(("machine", "body"), FREE)
def test_variables_of_the_own_frame_and_constants_need_no_check(machine: str, body: str) -> None:
    assert checks(body, machine) == []


@pytest.mark.parametrize(("machine", "body", "why"), REFUSED)
def test_what_could_leave_the_function_or_its_frame_is_refused(machine: str, body: str, why: str) -> None:
    with pytest.raises(Refused, match=rf"^f .*{why}"):
        guarded(function(body, machine), machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_function_ends_in_a_trap(machine: str) -> None:
    trap = {"x86_64": "ud2", "aarch64": "brk"}[machine]
    assert trap in guarded(function("", machine, end=f"{JUMP[machine]} .L2;.L2:;{COUNT[machine]}"), machine).text


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("target", ["f", "g", "TABLE", ".LC0"])
def test_a_jump_stays_in_its_function(machine: str, target: str) -> None:
    with pytest.raises(Refused, match="jumps out of its code"):
        guarded(function(f"{JUMP[machine]} {target}", machine) + function("", machine, "g"), machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_loop_is_counted_where_its_function_is(machine: str) -> None:
    jump, count, adds = JUMP[machine], COUNT[machine], ADD[machine]
    assert guarded(function(f".L2:;{count};{jump} .L2", machine), machine)
    assert guarded(function(f".L2:;nop;.L3:;{count};{jump} .L2", machine), machine)  # a loop behind a case
    assert guarded(function(f".L2:;{adds};{jump} .L2", machine), machine)  # a function of the headers
    for uncounted in (adds, f"nop;{adds};{count}"):
        with pytest.raises(Refused, match="has a loop that is not counted"):
            guarded(function(f"{count};.L2:;{uncounted};{jump} .L2", machine), machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_data_with_values_is_read_only(machine: str) -> None:
    data = '\t.data\nA:\n\t.long\t1\n\t.section\t.data.B,"awG",@progbits,B,comdat\nB:\n\t.long\t2\n'
    relocated = '\t.section\t.data.rel.ro.local,"aw"\nC:\n\t.quad\tA\n'
    data += '\t.section\t.data.relu_steps,"awG",@progbits,relu_steps,comdat\nrelu_steps:\n\t.long\t3\n'
    late = '\t.section\t.data.rel.local,"aw"\nD:\n\t.quad\tA\n'
    text = guarded(data + relocated + late + function("", machine), machine).text
    assert "\t.section\t.rodata\nA:" in text
    assert '\t.section\t.rodata.B,"aG",@progbits,B,comdat\nB:' in text
    assert '\t.section\t.rodata.relu_steps,"aG",' in text
    assert relocated in text
    assert '\t.section\t.data.rel.ro.local,"aw"\nD:' in text


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_name_functions(machine: str) -> None:
    call = COUNT[machine].partition(" ")[0]
    data = "\t.section\t.rodata\n\t.type\tTABLE, %object\nTABLE:\n\t.quad\t5\n"
    alias = "\t.set\th,f\n"
    for target in ("f", "h", "asc_barrier"):
        assert guarded(alias + data + function(f"{call} {target}", machine), machine)
    for target in ("TABLE", ".L2"):
        with pytest.raises(Refused, match="calls what is no function"):
            guarded(alias + data + function(f"{call} {target}", machine), machine)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\t.text\n\t.quad\t5\n", "none of the compiler's here"),
        ("\t.text\nhere:\n", "a place in code that is no function"),
        ('\t.section\t.mine,"awx",@progbits\n', "can be written and executed"),
        ("\t.incbin\t\"file\"\n", "none of the compiler's here"),
        ("\t.pushsection .data\n", "none of the compiler's here"),
        ("\t.macro\tm\n", "none of the compiler's here"),
        ("#APP\n", "no assembly of the compiler's"),
        ("\tnop\n", "no assembly of the compiler's"),
        ("\t.data\n\t.type\tf, %function\nf:\n\t.quad\t5\n", "a place in code that is no function"),
        ("\t.text\n\t.type\tmemset, %function\nmemset:\n", "reserved for the compiler"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_compiler_is_refused(machine: str, text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        guarded(text, machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_function_has_no_data_and_an_end(machine: str) -> None:
    text = function("nop", machine)
    with pytest.raises(Refused, match="has data in its code"):
        guarded(text.replace("\tnop", "\t.long\t5\n\tnop"), machine)
    with pytest.raises(Refused, match="has no end"):
        guarded(text.rpartition("\t.size")[0], machine)


FRAMES = [
    ("x86_64", "pushq %rbp;movq %rsp, %rbp", "popq %rbp;ret", 0),
    ("x86_64", "pushq %rbp;movq %rsp, %rbp;addq $-128, %rsp", "leave;ret", 128),
    ("x86_64", "pushq %rbp;movq %rsp, %rbp;andq $-64, %rsp;subq $256, %rsp", "leave;ret", 256),
    (
        "x86_64",
        "pushq %rbp;movq %rsp, %rbp;leaq -32768(%rsp), %r11;.LPSRL0:;subq $4096, %rsp;orq $0, (%rsp);cmpq %r11, %rsp;"
        "jne .LPSRL0;subq $240, %rsp",
        "leave;ret",
        33008,
    ),
    (
        "aarch64",
        "sub sp, sp, #192;stp x29, x30, [sp, 32];add x29, sp, 32",
        "ldp x29, x30, [sp, 32];add sp, sp, 192;ret",
        192,
    ),
    (
        "aarch64",
        "mov x12, 4128;sub sp, sp, x12;stp x29, x30, [sp];mov x29, sp",
        "ldp x29, x30, [sp];mov x12, 4128;add sp, sp, x12;ret",
        4128,
    ),
    (
        "aarch64",
        "mov x12, 0;movk x12, 0x2, lsl 16;sub x12, sp, x12;.LPSRL0:;sub sp, sp, 65536;str xzr, [sp, 1024];"
        "cmp sp, x12;b.ne .LPSRL0;sub sp, sp, #112;stp x29, x30, [sp];mov x29, sp",
        "ldp x29, x30, [sp];add sp, sp, 112;mov x12, 131072;add sp, sp, x12;ret",
        131184,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "begin", "end", "size"), FRAMES)
def test_frames_of_all_sizes_are_understood(machine: str, begin: str, end: str, size: int) -> None:
    last = {"x86_64": f"movq %rax, {-size}(%rbp)", "aarch64": f"str x0, [sp, {size - 8}]"}[machine]
    beyond = {"x86_64": f"movq %rax, {-size - 8}(%rbp)", "aarch64": f"str x0, [sp, {size}]"}[machine]
    assert checks(last if size else "nop", machine, begin=begin, end=end) == []
    assert len(checks(beyond, machine, begin=begin, end=end)) == 1


@pytest.mark.parametrize(
    ("machine", "begin"),
    [
        ("x86_64", "nop"),
        ("x86_64", "pushq %rbp;movq %rsp, %rbp;subq $65536, %rsp"),
        ("x86_64", "pushq %rbp;movq %rsp, %rbp;andq $-65536, %rsp;subq $4096, %rsp"),
        ("aarch64", "nop"),
        ("aarch64", "sub sp, sp, x12;stp x29, x30, [sp];mov x29, sp"),
        ("aarch64", "sub sp, sp, #192;stp x29, x30, [sp, 32];mov x29, sp"),
        ("aarch64", "mov x12, 1048576;sub sp, sp, x12;stp x29, x30, [sp];mov x29, sp"),
    ],
)
def test_other_frames_are_refused(machine: str, begin: str) -> None:
    with pytest.raises(Refused, match=r"^f (has no frame|has a frame that|keeps its local variables)"):
        guarded(function("nop", machine, begin=begin), machine)


@pytest.mark.parametrize(
    ("machine", "end"),
    [
        ("aarch64", "ldp x29, x30, [sp], 32;ret"),
        ("aarch64", "ldp x29, x30, [sp, 16];add sp, sp, 48;ret"),
        ("x86_64", "popq %rbp;ret"),
    ],
)
def test_a_frame_is_taken_down_as_it_was_made(machine: str, end: str) -> None:
    with pytest.raises(Refused):
        guarded(function("nop", machine, end=end), machine)


def test_what_is_computed_behind_a_counter_is_counted() -> None:
    count = COUNT["x86_64"]
    body = f"{count};addl %eax, %edx;mulss %xmm0, %xmm1;{count};idivl %ecx;divss %xmm0, %xmm1;movl %eax, %edx"
    assert guarded(function(body, "x86_64"), "x86_64").computed == {"f": [Computed(4, 1, 1, 0), Computed(7, 0, 0, 2)]}
