"""No text reaches a widget of Textual except through `shardscope.widgets.safe`, or as a literal of our own.

Textual reads markup in plain strings, so a name from a checkpoint could style, click or crash the screen. The rules are
checked in the syntax tree of everything that draws.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRAWN = sorted(
    path
    for folder in ("widgets/shardscope/widgets", "app/shardscope/app")
    for path in (ROOT / folder).rglob("*.py")
    if "cli" not in path.parts
)
SINKS = {
    "Static",
    "Label",
    "Button",
    "Checkbox",
    "RadioButton",
    "Collapsible",
    "Tab",
    "Option",
    "Link",
    "Digits",
    "update",
    "add_option",
    "add_options",
    "set_options",
    "add_row",
    "add_column",
    "add_leaf",
    "add_node",
}
"""Calls whose first argument is read as markup when it is a plain string."""
ATTRIBUTES = {"border_title", "border_subtitle", "tooltip", "label", "prompt", "renderable"}
"""Attributes that are read as markup when they are set to a plain string."""
SAFE_CALLS = {"content", "Content", "Text"}
"""Calls that make `Content` or `Text`, beside the functions of the same module that say so."""
MADE = {"Content", "Text", "Content | None", "Option"}
"""Annotations of what is safe."""


def called(node: ast.Call) -> str:
    """Return the last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_safe(node: ast.expr, names: set[str]) -> bool:
    """Tell whether an expression is a literal without markup, or is known to be `Content` or `Text`."""
    match node:
        case ast.Constant(value=str(text)):
            return "[" not in text
        case ast.Constant():
            return True
        case ast.Call(func=ast.Attribute(value=owner, attr="assemble" | "join" | "styled")):
            return is_safe(owner, names) or ast.unparse(owner) in ("Content", "Text")
        case ast.Call():
            return called(node) in SAFE_CALLS | names or called(node) == "Option"  # which is a sink itself
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return all(is_safe(element, names) for element in elements)
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.Starred(value=element):
            return is_safe(element, names)
        case ast.IfExp():
            return is_safe(node.body, names) and is_safe(node.orelse, names)
        case ast.BinOp(op=ast.Add()):
            return is_safe(node.left, names) and is_safe(node.right, names)
        case ast.Name(id=name):
            return name in names
    return False


def content_names(tree: ast.AST) -> set[str]:
    """Return the names that are declared, returned or assigned as `Content` or `Text` and as nothing else."""
    good: set[str] = set()
    bad: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                (good if ast.unparse(annotation) in MADE else bad).add(name)
            case ast.FunctionDef(name=name, returns=ast.expr() as annotation):
                (good if ast.unparse(annotation) in MADE else bad).add(name)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                (good if ast.unparse(annotation) in MADE else bad).add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                (good if is_safe(value, set()) else bad).add(name)
    return good - bad


def faults(source: str) -> Iterator[str]:
    """Yield what breaks the rules, one line each."""
    tree = ast.parse(source)
    names = content_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = called(node)
            line = f"line {node.lineno}: {name}"
            if name == "from_markup" and node.args and not isinstance(node.args[0], ast.Constant):
                yield f"{line}: markup is made of a literal only; pass texts as variables"
            elif name == "notify":
                markup = next((word.value for word in node.keywords if word.arg == "markup"), None)
                if not (isinstance(markup, ast.Constant) and markup.value is False):
                    yield f"{line}: say markup=False"
            elif name in SINKS and node.args and not is_mapping_update(node):
                if not is_safe(node.args[0], names):
                    yield f"{line}({ast.unparse(node.args[0])}): not known to be Content, Text or a plain literal"
            elif name == "escape" and ast.unparse(node.func) != "re.escape":
                yield f"{line}: escaping markup does not hold; use safe.content"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if (
                    isinstance(target, ast.Attribute)
                    and target.attr in ATTRIBUTES
                    and not is_safe(node.value, names)
                ):
                    yield f"line {node.lineno}: {target.attr} = {ast.unparse(node.value)}: not known to be Content"


def is_mapping_update(node: ast.Call) -> bool:
    """Tell `dict.update` and `set.update` from `Static.update`: theirs go to names of collections."""
    if called(node) != "update" or not isinstance(node.func, ast.Attribute):
        return False
    owner = ast.unparse(node.func.value)
    return not (owner == "self" or "query" in owner or owner.endswith(("line", "foot", "title", "widget")))


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_raw_text_reaches_a_widget(path: Path) -> None:
    assert list(faults(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "bad",
    [
        "Content.from_markup(f'[b]{name}[/b]')",
        "Text.from_markup(name)",
        "self.notify(message)",
        "self.app.notify(str(error), markup=True)",
        "Static(name)",
        "Static(f'{name} is gone')",
        "Label('[b]' + name)",
        "self.query_one(Static).update(path.name)",
        "self.update(text)",
        "Option(entry.text)",
        "Tab(panel.title)",
        "self.border_title = path",
        "widget.tooltip = f'{path}'",
        "Static(escape(name))",
        "Static('[red]stop')",
        "name = path.text\nname = content('x')\nStatic(name)",
    ],
)
def test_the_rules_find(bad: str) -> None:
    assert list(faults(bad))


@pytest.mark.parametrize(
    "good",
    [
        "Content.from_markup('[b]$name[/b]', name=name)",
        "self.notify(visible(message), markup=False)",
        "Static(content(name))",
        "Static('plain words')",
        "Static()",
        "Static(id='x')",
        "title = content(name)\nself.update(title)",
        "def show(self, line: Content) -> None:\n    self.update(line)",
        "self.border_title = content('Files')",
        "found.update(more)",
    ],
)
def test_the_rules_leave_alone(good: str) -> None:
    assert list(faults(good)) == []
