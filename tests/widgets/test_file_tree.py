"""The files: folders and sizes, marks that reach upwards, a legend of the letters in use, jumping to a file."""

from tests.widgets import samples
from tests.widgets.stage import Stage, screen_text

from shardscope.engine.model.source import Inventory, Kind
from shardscope.widgets.file_tree import FileTree, InventoryTree, Legend, Mark

STATES = b"global_step1200/zero_pp_rank_0_mp_rank_00_model_states.pt"
MARKS = {STATES: [Mark.OPAQUE], b"huggingface/config.json": [Mark.ERROR], b"zero_to_fp32.py": [Mark.CODE]}


def rows(app: Stage) -> list[list[str]]:
    return [line.split() for line in screen_text(app).splitlines() if line.strip()]


async def test_folders_come_first_closed_with_the_bytes_of_what_they_hold() -> None:
    tree = FileTree()
    app = Stage(tree)
    async with app.run_test(size=(60, 30)) as pilot:
        tree.show_files(InventoryTree(samples.INVENTORY, MARKS))
        await pilot.pause()
        assert rows(app) == [
            ["▸", "global_step1200/", "15.4", "GiB"],
            ["▸", "huggingface/", "3.1", "MiB", "E"],
            ["latest", "16", "B"],
            ["pipe", "fifo", "x"],
            ["weights.pt", "link", "l"],
            ["zero_to_fp32.py", "31.2", "KiB", "c"],
        ]


async def test_names_that_are_alike_keep_what_tells_them_apart() -> None:
    tree = FileTree()
    app = Stage(tree)
    async with app.run_test(size=(42, 30)) as pilot:
        tree.show_files(InventoryTree(samples.INVENTORY))
        await pilot.press("enter")
        names = [row[1] for row in rows(app) if "_rank_" in row[1]]
        assert len(names) == len(set(names)) == 15


async def test_the_only_folder_at_the_top_is_open() -> None:
    tree = FileTree()
    async with Stage(tree).run_test(size=(60, 30)):
        tree.show_files(InventoryTree(Inventory(root_is_file=False, entries=samples.FILES[:3], blockers=())))
        assert tree.row_count() == 3


async def test_messages_name_the_entry() -> None:
    tree = FileTree()
    app = Stage(tree)
    async with app.run_test(size=(60, 30)) as pilot:
        tree.show_files(InventoryTree(samples.INVENTORY))
        await pilot.press("G", "enter")
        await pilot.pause()
        assert tree.entry is samples.FILES[-1]
        assert [each.entry.path for each in app.said if isinstance(each, FileTree.FileSelected)] == [
            b"zero_to_fp32.py"
        ]
        highlighted = [each.entry for each in app.said if isinstance(each, FileTree.FileHighlighted)]
        assert highlighted[-1] is samples.FILES[-1]


async def test_a_blocker_leads_to_its_file() -> None:
    odd = samples.entry(b"folder/odd\x1b\xff name.json")
    inventory = Inventory(
        root_is_file=False,
        entries=(samples.entry(b"folder", Kind.DIRECTORY), odd, samples.entry(b"z")),
        blockers=(),
    )
    tree = FileTree()
    async with Stage(tree).run_test(size=(60, 30)):
        tree.show_files(InventoryTree(inventory))
        assert not tree.reveal_subject("no such file")
        assert tree.reveal_subject(odd.text)
        assert tree.entry is odd
        assert tree.reveal_subject("z")
        assert tree.entry is inventory.entries[-1]


async def test_marks_can_come_later_and_reach_the_folders_above() -> None:
    tree = FileTree()
    app = Stage(tree)
    async with app.run_test(size=(60, 30)) as pilot:
        tree.show_files(InventoryTree(samples.INVENTORY))
        await pilot.pause()
        assert rows(app)[0][-1] == "GiB"
        tree.show_marks({STATES: [Mark.WARNING, Mark.OPAQUE], b"no/such/path": [Mark.ERROR]})
        await pilot.pause()
        assert rows(app)[0][-1] == "W"  # the opaque mark stays with the file


async def test_the_legend_names_the_letters_in_use_and_never_splits_them() -> None:
    legend = Legend()
    app = Stage(legend)
    async with app.run_test(size=(30, 10)) as pilot:
        legend.show_legend(InventoryTree(samples.INVENTORY, MARKS))
        await pilot.pause()
        lines = [line for line in screen_text(app).splitlines() if line]
        assert "  ".join(lines).split("  ") == [
            "21 files",
            "2 folders",
            "E error",
            "l link",
            "x not a file",
            "o opaque",
            "c code",
        ]
        assert all(len(line) <= 30 for line in lines)


async def test_no_files_is_said() -> None:
    tree = FileTree(empty="The folder is empty")
    app = Stage(tree)
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.press("enter", "right", "left", "down", "G")
        assert "The folder is empty" in screen_text(app)
        assert tree.entry is None


async def test_roles_stand_beside_sizes_where_there_is_room() -> None:  # R096
    roles = ["optimizer" if b"optim" in each.path else "other" for each in samples.FILES]
    for width, shown in ((80, True), (48, False)):
        tree = FileTree()
        app = Stage(tree)
        async with app.run_test(size=(width, 30)) as pilot:
            tree.show_files(InventoryTree(samples.INVENTORY, roles=roles))
            tree.open_line(0)
            await pilot.pause()
            assert ("optimizer         2.2 GiB" in screen_text(app)) is shown
            assert "other" not in screen_text(app)
