"""What can be copied at a moment: the command that says the same, and the name and the path of what the cursor is on."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from shardscope.app.explorer.target import Target, inspect_command, quoted

if TYPE_CHECKING:
    from textual.app import App

    from shardscope.app.explorer.checkpoint.workspace import Workspace


class Copy(NamedTuple):
    """One text that can be copied."""

    key: str
    """What copies it in the dialog."""
    what: str
    """What it is, in a word."""
    text: str
    """Safe to show and to paste: what is not stands as a shell quotes it."""


def harmless(text: str) -> str:
    """Return a name as it is, or as a shell quotes it where it holds what would act on a terminal."""
    word = quoted(text)
    return word if word.startswith("$'") else text


def of_path(path: str, *, hf_cache: bool = False, name: str = "") -> tuple[Copy, ...]:
    """Return what can be copied about a path: the command that looks at it, a name, and the whole path."""
    whole = os.path.abspath(path)
    return (
        Copy("y", "command", inspect_command(Target(path, hf_cache=hf_cache))),
        Copy("n", "name", harmless(name or os.path.basename(whole) or whole)),
        Copy("p", "path", harmless(whole)),
    )


def under_cursor(workspace: "Workspace | None", target: Target) -> tuple[Copy, ...]:
    """Return the name and the path of what the cursor of the Explore screen is on, otherwise those of the checkpoint."""
    _, name, path = of_path(target.path)
    if workspace is None:
        return (name, path)
    tree = workspace.file_tree
    if tree.has_focus:
        entry = tree.entry
        if entry is not None:
            whole = os.path.join(os.path.abspath(target.path), os.fsdecode(entry.path))
            return (Copy("n", "name", harmless(os.path.basename(whole))), Copy("p", "path", harmless(whole)))
        return (name, path)
    from shardscope.widgets.blockers_panel import BlockersPanel
    from shardscope.widgets.tensor_views import TensorViews

    front = workspace.panels.front
    if isinstance(front, BlockersPanel) and front.blocker is not None:
        return (Copy("n", "code", front.blocker.code), path)
    if isinstance(front, TensorViews) and (tensor := front.tensor) is not None:
        node = tree.files.node_of_subject(
            tensor.file
        )  # the tensor knows its file by a text, the tree by its bytes
        if node is not None:
            whole = os.path.join(os.path.abspath(target.path), os.fsdecode(tree.files.entry(node).path))
            path = Copy("p", "path", harmless(whole))
        return (Copy("n", "name", harmless(tensor.name)), path)
    return (name, path)


def copy(app: "App[Any]", copies: tuple[Copy, ...], note: str = "") -> None:
    """Send the first of `copies`, a command, to the clipboard, and show them all."""
    from shardscope.app.explorer.dialogs import CopiedCommand

    app.copy_to_clipboard(copies[0].text)
    app.push_screen(CopiedCommand(copies[0].text, note, copies[1:]))


def save(path: str, text: str) -> str | None:
    """Write `text` to a new file that only its owner may read; return why not, where that failed."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()
    return None
