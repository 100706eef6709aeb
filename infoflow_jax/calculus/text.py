"""A target from its text: the inverse of `str(target)`. Reads the words of `language` only.

The text is Python's syntax, one definition a line, the last called output; nothing of it is run: a
call is taken only if it names a word of the language.
"""

import ast
from collections.abc import Callable
from typing import Any

from infoflow_jax.calculus import language
from infoflow_jax.calculus.tree import Expression, Ref, Target
from sweep_jax.checks import require

WORDS: dict[str, Callable[..., Any]] = {
    name: getattr(language, name)
    for name in (
        *("x", "shift", "linear", "dot", "bilinear", "norm", "part", "cosine"),
        *("minimum", "maximum", "argmin", "argmax", "total"),
    )
}

LONGEST = 20_000  # characters


def parse(text: str) -> Target:
    """The target that a text describes; it is not validated.

    Raises:
      ValueError: a syntax error, a word that is not of the language, a name defined twice, or no
        output; the message shows the part.
    """
    require(len(text) <= LONGEST, "target", f"{text[:40]}...", f"at most {LONGEST} characters")
    try:
        return _parse(text)
    except RecursionError:
        raise ValueError(f"target = {text[:40]!r}...: expected less deep nesting") from None


def _parse(text: str) -> Target:
    try:
        lines = ast.parse(text.strip()).body
    except SyntaxError as error:
        raise ValueError(f"target = {text!r}: expected Python syntax: {error}") from None
    found: dict[str, Expression] = {}
    each = None
    for line in lines:
        ok = isinstance(line, ast.Assign) and len(line.targets) == 1
        ok = ok and isinstance(line.targets[0], ast.Name)  # type: ignore[attr-defined]
        require(ok, "target", ast.unparse(line), "lines as `name = expression`")
        assert isinstance(line, ast.Assign)
        assert isinstance(line.targets[0], ast.Name)
        name, value = line.targets[0].id, line.value
        require(name not in found, "target", name, "a name that is defined once")
        require(name not in WORDS and name != "each", "target", name, "a name, not a word")
        if name == "output" and isinstance(value, ast.Call) and _word(value) == "each":
            ok = len(value.args) == 2 and isinstance(value.args[0], ast.Constant)
            require(ok and not value.keywords, "each", ast.unparse(value), 'each("t", expression)')
            each, value = value.args[0].value, value.args[1]  # type: ignore[attr-defined]
        found[name] = _expression(value)
    require("output" in found, "target", text, "a line `output = expression`")
    output = found.pop("output")
    return Target(output, tuple(found.items()), each)


def _word(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _expression(node: ast.expr) -> Expression:
    value = _value(node)
    require(isinstance(value, Expression), "target", ast.unparse(node), "an expression")
    return value


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() | int() | float() as constant):
            return constant
        case ast.Name(id=name):
            return Ref(name)
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _expression(left) + _expression(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _expression(left) - _expression(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factor = _value(left)
            number = isinstance(factor, int | float) and not isinstance(factor, bool)
            require(number, "target", ast.unparse(node), "number * expression")
            return factor * _expression(right)
        case ast.Call(args=args, keywords=keywords):
            word = _word(node)
            require(word in WORDS, "target", ast.unparse(node.func), f"a word of {sorted(WORDS)}")
            named = {k.arg: _value(k.value) for k in keywords if k.arg is not None}
            try:
                return WORDS[word](*(_value(arg) for arg in args), **named)
            except TypeError as error:
                raise ValueError(f"target = {ast.unparse(node)!r}: {error}") from None
    raise ValueError(f"target = {ast.unparse(node)!r}: expected a word of the language")
