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
from collections.abc import Iterator

from kernel_gym.hardware.ascend_sim import gimple

TREES = "kernel.trees"
FLAGS = (f"-fdump-tree-original-raw={TREES}",)

_FUNCTION = ";; Function "
#: A node of a tree: its number, its kind and its fields, of which those with a number are other nodes.
_NODE = re.compile(r"^@(\d+) +(\w+) +(.*(?:\n +.*)*)", re.MULTILINE)
_CALLS = ("call_expr", "aggr_init_expr")
_CALLED, _FIRST = re.compile(r"\bfn *: @(\d+)"), re.compile(r"\bop 0: @(\d+)")
#: Kinds of nodes whose parts are all in the dump: types, declarations, constants, arithmetic, comparisons, and others.
_PLAIN = re.compile(
    r"\w+_(?:type|decl|cst|node)"
    r"|(?:plus|minus|mult|\w+_div|\w+_mod|rdiv|negate|absu?|min|max|bit_\w+|[lr](?:shift|rotate)|float|fix_trunc)_expr"
    r"|(?:(?:un)?(?:lt|le|gt|ge|eq)|ne|ltgt|(?:un)?ordered|truth_\w+)_expr"
    r"|(?:pointer_plus|pointer_diff|(?:pre|post)(?:in|de)crement|convert|view_convert|nop|non_lvalue|paren)_expr"
    r"|(?:addr|bind|call|aggr_init|case_label|cleanup_point|compound|cond|decl|empty_class|exit|goto|init|label)_expr"
    r"|(?:loop|modify|must_not_throw|predict|return|save|switch|target|try_catch|try_finally)_expr"
    r"|tree_list|tree_vec|binfo|array_ref|component_ref|indirect_ref|obj_type_ref|constructor|expr_stmt|statement_list"
)

_DEFINED = re.compile(r"\n;; Function .*, decl_uid=(\d+), ")
_CALL = re.compile(r"^  (?:.* = )?(.*?)D\.(\d+) \(", re.MULTILINE)
#: A function without a body that may be called: one of the compiler or of the headers, whose names no author may use.
_OUTSIDE = re.compile(r"(?:__builtin_|asc_)\w+")
_NAME = re.compile(r"(?:.*[^\w])?(\w+)")
#: What the compiler inserts before the call of a function that does not return.
_NO_RETURN = "__builtin___asan_handle_no_return"


def not_by_name(trees: str) -> str | None:
    """Return the name of a function with a call of anything but a function by its name; None if there is none.

    Args:
        trees: The dump of the front end.
    """
    return next((name for name, text in _functions(trees) if not _calls_by_name(text)), None)


def _functions(trees: str) -> Iterator[tuple[str, str]]:
    for text in trees.split(_FUNCTION)[1:]:
        name, _, nodes = text.partition("\n")
        yield name.removesuffix(" (null)"), nodes


def _calls_by_name(text: str) -> bool:
    """Return whether all calls in a function are of functions by their names; false if its dump is not understood.

    Strings are in the dump as the author wrote them, so that they can look like nodes. But the compiler numbers the
    nodes one by one, and what is called behind the call: no other node can have this number.
    """
    kinds: dict[int, tuple[str, str]] = {}
    for number, node in enumerate(_NODE.finditer(text), 1):
        if int(node[1]) != number or _PLAIN.fullmatch(node[2]) is None:
            return False
        kinds[number] = node[2], node[3]
    return all(_is_by_name(number, fields, kinds) for number, (kind, fields) in kinds.items() if kind in _CALLS)


def _is_by_name(number: int, fields: str, kinds: dict[int, tuple[str, str]]) -> bool:
    called = _CALLED.search(fields)
    if called is None:  # a function of the compiler's own
        return True
    kind, parts = kinds.get(int(called[1]), ("", ""))
    if kind == "function_decl":
        return True
    first = _FIRST.search(parts)
    target = kinds.get(int(first[1]), ("", ""))[0] if first else ""
    return int(called[1]) > number and kind == "addr_expr" and target == "function_decl"


def elsewhere(dump: str) -> str | None:
    """Return the name of a function that calls one without a body, or one that never returns; None if there is none.

    Args:
        dump: The compiler's last GIMPLE.
    """
    defined = set(_DEFINED.findall(dump))
    for name, body in gimple.bodies(dump):
        if _NO_RETURN in body or not all(
            number in defined or _has_body_elsewhere(called) for called, number in _CALL.findall(body)
        ):
            return name
    return None


def _has_body_elsewhere(name: str) -> bool:
    """Return whether a function without a body may be called: also a constructor, whose body has another number."""
    if _OUTSIDE.fullmatch(name):
        return True
    scope, _, last = _without_arguments(name).rpartition("::")
    owner = _NAME.fullmatch(_without_arguments(scope))
    return last.startswith("~") or (owner is not None and owner[1] == last)


def _without_arguments(name: str) -> str:
    """Return the name of a function or class without the arguments of a template at its end."""
    depth = 0
    for place in range(len(name) - 1, -1, -1) if name.endswith(">") else ():
        depth += (name[place] == ">") - (name[place] == "<")
        if depth == 0:
            return name[:place]
    return name
