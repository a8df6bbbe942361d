"""Finds calls that may reach a function with other arguments than it expects, in the compiler's dumps.

A function that takes or returns a large object gets the object's address in a register, and no guard checks this
address. If a cast function is called, the register may hold any number. The compiler turns the call of a constant
function pointer into a direct call, whatever casts it went through, so neither the instructions nor GIMPLE show it. The
trees of the front end do: the operand of a call is the address of a function of the same type, or something else, such
as a cast, a variable or a conditional expression. Kernels with expressions whose operands are not in the dump are
refused, among them the assignment of an object that ends with unused bytes. No object of the headers does.

A call of a function that a header declares `noreturn` is refused, too. It has no code behind it, so that the caller
runs into the next function if it returns.
"""

from __future__ import annotations

import re

from kernel_gym.hardware.ascend_sim import gimple

TREES = "kernel.trees"
FLAGS = (f"-fdump-tree-original-raw={TREES}",)

_FUNCTION = ";; Function "
#: A node of a tree: its number, its kind and its fields. A field `@12` refers to node 12.
_NODE = re.compile(r"^@(\d+) +(\w+) +(.*(?:\n(?!@\d).*)*)", re.MULTILINE)
#: The length, which follows the bytes of a string or a name. In vectors it precedes the elements.
_LENGTH = re.compile(r"(?:^|\s)lngt: (\d+)\s*$")
_CALLS = ("call_expr", "aggr_init_expr")
#: Kinds of nodes that contain no calls: types, declarations, constants, ranges of constant indices, lists of names. The
#: screen refuses assembly.
_LEAF = re.compile(
    r"\w+_(?:type|decl|cst|node)|tree_list|tree_vec|binfo|template_type_parm|template_parm_index"
    r"|(?:empty_class|predict|goto|label|asm|range)_expr|deferred_parse"
)
_VIRTUAL_CALL, STRING, _IDENTIFIER = "obj_type_ref", "string_cst", "identifier_node"
#: An assignment of an object without the unused bytes at its end. The dump does not have the places.
COPY = "mem_ref"
#: Kinds of nodes whose operands are all in the dump. Those of `&` and `|` of comparisons are not.
VISIBLE = frozenset(
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
        *("cleanup_point", "try_finally"),
    ]
) | {"array_ref", "bit_field_ref", "component_ref", "indirect_ref", "constructor", "expr_stmt", "statement_list"}

_DEFINED = re.compile(r"\n;; Function .* \(\S+, funcdef_no=\d+, decl_uid=(\d+), ")
#: The call of a `noreturn` function, behind the call that the sanitizer inserts before it.
_LAST_CALL = re.compile(r"__builtin___asan_handle_no_returnD\.\d+ \(\);\n +(?:.* = )?.*?D\.(\d+) \(")


def indirect_call(trees: str) -> tuple[str, str] | None:
    """Return a function that calls something else than a named function, or may do so.

    Args:
        trees: The dump of the front end.

    Returns:
        The name of the function and the kind of node that may hide a call, empty if a call was found; None if all calls
        are of named functions.
    """
    for text in trees.split(_FUNCTION)[1:]:
        name, _, nodes = text.partition("\n")
        if (kind := _node_with_call(nodes)) is not None:
            return name.removesuffix(" (null)"), kind
    return None


def _node_with_call(text: str) -> str | None:
    """Return None if all calls in a function are of named functions.

    Otherwise return the kind of the first unknown node, or nothing if a call was found.
    """
    nodes: dict[int, tuple[str, str]] = {}
    end = text.find("\n@")
    for number, node in enumerate(_NODE.finditer(text), 1):
        if node[2] == _VIRTUAL_CALL:
            return ""
        is_next, end = node.start() == end + 1, node.end()
        if int(node[1]) != number or not (node[2] in VISIBLE or _LEAF.fullmatch(node[2])):
            return node[2]
        if not (is_next and _has_its_length(node[2], node[3])):
            return STRING
        nodes[number] = node[2], node[3]
    by_name = (_is_by_name(fields, nodes) for kind, fields in nodes.values() if kind in _CALLS)
    return None if all(by_name) else ""


def _has_its_length(kind: str, fields: str) -> bool:
    """Return whether the length field of a node matches its string.

    The dump contains the bytes of a string up to the first zero, a few blanks, and then the length. If the bytes
    contain lines that look like nodes, the length follows the last of these lines, and does not match it.
    """
    length = _LENGTH.search(fields)
    if kind not in (STRING, _IDENTIFIER):
        return length is None or length[1] == "0"
    if length is None:
        return "strg: " not in fields  # the name of an operator
    string, size = fields[: length.start()].partition("strg: ")[2], int(length[1])
    sizes = (size - 1, size) if kind == STRING else (size,)  # with the zero at its end, or a table of bytes without it
    return any(len(string) >= size and not string[size:].strip() for size in sizes)


def _is_by_name(fields: str, nodes: dict[int, tuple[str, str]]) -> bool:
    """Return whether a call with these fields is one of a named function with its own type, or of a built-in one."""
    called = _part("fn", fields, nodes)
    if called is None or called[0] == "function_decl":
        return True
    pointer = _part("type", called[1], nodes)
    while called is not None and called[0] == "nop_expr":  # a cast: of `noexcept`, or of the type
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
    """Return the kind of a function type and the nodes of its class, result and parameters."""
    return [function[0], *re.findall(r"(?<!\w)(?:clas|retn|prms) *: @\d+", function[1])]


def noreturn_call(dump: str) -> str | None:
    """Return the name of a function that calls a `noreturn` function which the kernel defines.

    Args:
        dump: The dump of the last GIMPLE.
    """
    defined = set(_DEFINED.findall(dump))
    for name, body in gimple.bodies(dump):
        if not defined.isdisjoint(_LAST_CALL.findall(body)):
            return name
    return None
