"""Finds calls of anything but a function by its name, in the compiler's dumps.

A function that takes or returns a large object gets its address in a register. Called as a function of another type, it
gets a number there, and no guard looks at what lies at this place. The compiler makes a plain call of a constant
pointer to a function, whatever casts it went through, so neither the instructions nor the last intermediate form show
it. But the trees of its front end have what each call calls: the address of a function, which has the function's own
type, or something else, such as a cast, a variable or a choice.

Two more ways lead to code that expects something else. A function with the linkage of C can be declared with different
parameters in two namespaces: then it is called by a declaration without a body. And a caller ends with the call of a
function that a header declares never to return: behind it there is the code of another function.
"""

from __future__ import annotations

import re

from kernel_gym.hardware.ascend_sim import gimple
from kernel_gym.hardware.host.launch_syntax import tokens

TREES = "kernel.trees"
FLAGS = (f"-fdump-tree-original-raw={TREES}",)

_FUNCTION = ";; Function "
#: A node of a tree: its number, its kind and its fields, of which those with a number are other nodes.
_NODE = re.compile(r"^@(\d+) +(\w+) +(.*(?:\n +.*)*)", re.MULTILINE)
_NODE_BEGINS = "@"
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)", re.DOTALL)
_CALLS = ("call_expr", "aggr_init_expr")
#: Kinds of nodes that have no parts with calls: types, declarations, constants, lists of names.
_LEAF = re.compile(
    r"\w+_(?:type|decl|cst|node)|tree_list|tree_vec|binfo|template_type_parm|template_parm_index"
    r"|(?:empty_class|predict|goto|label)_expr"
)
#: Kinds of nodes whose parts are all in the dump: those with `_expr` at their end, and others.
WHOLE = frozenset(
    f"{name}_expr"
    for name in [
        *("plus", "minus", "mult", "trunc_div", "trunc_mod", "rdiv", "exact_div", "negate", "abs", "min", "max"),
        *("bit_and", "bit_ior", "bit_xor", "bit_not", "lshift", "rshift", "lrotate", "rrotate"),
        *("lt", "le", "gt", "ge", "eq", "ne", "unlt", "unle", "ungt", "unge", "uneq"),
        *("truth_not", "truth_andif", "truth_orif", "cond", "compound"),
        *("preincrement", "predecrement", "postincrement", "postdecrement"),
        *("nop", "convert", "float", "fix_trunc", "non_lvalue", "view_convert"),
        *("addr", "pointer_plus", "pointer_diff", "call", "aggr_init", "target", "save"),
        *("init", "modify", "decl", "bind", "loop", "exit", "switch", "case_label", "return"),
        *("cleanup_point", "try_catch", "try_finally"),
    ]
) | {"array_ref", "bit_field_ref", "component_ref", "indirect_ref", "constructor", "expr_stmt", "statement_list"}
#: Kinds of nodes whose parts are not in the dump, or may not be: `&`, `|` and `^` of comparisons, copies of objects,
#: ranges of indices. The screen refuses assembly.
_HIDING = frozenset({"truth_and_expr", "truth_or_expr", "truth_xor_expr", "mem_ref", "range_expr", "asm_expr"})

_DEFINED = re.compile(r"\n;; Function .* \((\S+), funcdef_no=\d+, decl_uid=(\d+), ")
_CALL = re.compile(r"^  (?:.* = )?(.*?)D\.(\d+) \(", re.MULTILINE)
_NAME = re.compile(r"(?:.*[^\w])?(\w+)")
#: A call or launch, in a text with two blanks between tokens.
_CALL_IN_TEXT = re.compile(r" [A-Za-z_$][\w$]* (?: < (?: (?:[\w$]+|::|,) )* > )?(?= (?:\(|<<<) )")
#: The first parameter of a method or a closure, functions of the headers that launch, and a lambda that was converted
#: to a pointer. No author may use the namespace of the headers.
_OBJECT = re.compile(r" const (?:this|__closure)D\.\d+[,)]")
_LAUNCHERS, _LAMBDA = ("asc::Launcher<", "asc::launcher<"), "_FUN"
#: The call of a function that does not return, behind what the compiler inserts before it.
_LAST_CALL = re.compile(r"__builtin___asan_handle_no_returnD\.\d+ \(\);\n +(?:.* = )?.*?D\.(\d+) \(")


def may_look_like_a_node(string: str) -> bool:
    """Return whether a string of the text may have the character that a node in the dump begins with.

    The dump has the bytes of strings as they are, up to a zero. A character of more than one byte may have any of them.
    """
    is_wide = string[0] in "uUL" and not string.startswith("u8")
    if _NODE_BEGINS in string or "\\N" in string or (is_wide and not string.isascii()):
        return True
    for escape in _ESCAPE.finditer(string):
        octal, *others = escape.groups(default="")
        value = int(octal, 8) if octal else int("".join(others) or "0", 16)
        if value % 256 == ord(_NODE_BEGINS) or (is_wide and value > ord("~")):
            return True
    return False


def not_by_name(trees: str, dump: str, source: str) -> tuple[str, str] | None:
    """Return a function with a call of anything but a function by its name, and the kind of node that hides calls.

    Args:
        trees: The dump of the front end.
        dump: The compiler's last GIMPLE.
        source: The text that was compiled, with its launches as the author wrote them.

    Returns:
        The name of the function, and nothing if such a call was found; None if there is none.
    """
    allowed = WHOLE | _HIDING if _only_called(dump, source) else WHOLE
    for text in trees.split(_FUNCTION)[1:]:
        name, _, nodes = text.partition("\n")
        if (hidden := _hidden_call(nodes, allowed)) is not None:
            return name.removesuffix(" (null)"), hidden
    return None


def _only_called(dump: str, source: str) -> bool:
    """Return whether the text uses all names of functions for nothing but calls, so that none can have been cast.

    Methods, constructors and closures cannot be cast. Arguments of a template may stand before the parenthesis of a
    call if they are plain names and numbers; with others the name counts as a value.
    """
    text = "  ".join(["", *(word.text for word in tokens(source)), ""])
    values = set(re.findall(r" ([A-Za-z_$][\w$]*) ", _CALL_IN_TEXT.sub("", text)))
    for function in dump.split(gimple.FUNCTION)[1:]:
        name = _NAME.fullmatch(_without_arguments(function.partition(" (")[0]))
        is_method = _OBJECT.search(function.partition("\n{\n")[0]) is not None
        if not (is_method or function.startswith(_LAUNCHERS)) and (name is None or name[1] in values | {_LAMBDA}):
            return False
    return True


def _hidden_call(text: str, allowed: frozenset[str]) -> str | None:
    """Return None if all calls in a function are of functions by their names, else the kind of node that hides calls.

    Strings are in the dump as the author wrote them, but none has the character that a node begins with (compiler.py).
    Nor can one look like the beginning of another function, because the nodes of each are numbered from 1 on.
    """
    nodes: dict[int, tuple[str, str]] = {}
    for number, node in enumerate(_NODE.finditer(text), 1):
        if int(node[1]) != number or not (node[2] in allowed or _LEAF.fullmatch(node[2])):
            return node[2]
        nodes[number] = node[2], node[3]
    by_name = (_is_by_name(fields, nodes) for kind, fields in nodes.values() if kind in _CALLS)
    return None if all(by_name) else ""


def _is_by_name(fields: str, nodes: dict[int, tuple[str, str]]) -> bool:
    """Return whether a call with these fields is one of a function as what it is, or of one of the compiler's own."""
    called = _part("fn", fields, nodes)
    if called is None or called[0] == "function_decl":
        return True
    pointer = _part("type", called[1], nodes)
    while called is not None and called[0] == "nop_expr":  # changes `noexcept`, or the type
        called = _part("op 0", called[1], nodes)
    function = _part("op 0", called[1], nodes) if called is not None and called[0] == "addr_expr" else None
    if pointer is None or function is None or function[0] != "function_decl":
        return False
    as_called, own = _part("ptd", pointer[1], nodes), _part("type", function[1], nodes)
    return as_called is not None and own is not None and _signature(as_called) == _signature(own)


def _part(name: str, fields: str, nodes: dict[int, tuple[str, str]]) -> tuple[str, str] | None:
    found = re.search(rf"(?<!\w){name} *: @(\d+)", fields)
    return nodes.get(int(found[1]), ("", "")) if found else None


def _signature(function: tuple[str, str]) -> list[str]:
    """Return the kind of a type of functions, and the numbers of its class, its result and its parameters."""
    return [function[0], *re.findall(r"(?<!\w)(?:clas|retn|prms) *: @\d+", function[1])]


def elsewhere(dump: str) -> str | None:
    """Return the name of a function that calls one by a declaration without its body, or one that never returns.

    Args:
        dump: The compiler's last GIMPLE.

    Returns:
        None if there is no such call. Functions that are not in the kernel at all are for the screens.
    """
    symbols, numbers = map(set, zip(*_DEFINED.findall(dump), strict=True)) if _DEFINED.search(dump) else (set(), set())
    for name, body in gimple.bodies(dump):
        by_another = any(
            number not in numbers and _without_arguments(called).rpartition("::")[2] in symbols
            for called, number in _CALL.findall(body)
        )
        if by_another or not numbers.isdisjoint(_LAST_CALL.findall(body)):
            return name
    return None


def _without_arguments(name: str) -> str:
    """Return the name of a function or class without the arguments of a template at its end."""
    depth = 0
    for place in range(len(name) - 1, -1, -1) if name.endswith(">") else ():
        depth += (name[place] == ">") - (name[place] == "<")
        if depth == 0:
            return name[:place]
    return name
