"""The last look: whatever slipped through everything before it is found, and nothing is written."""

import json
import os
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Fault
from shardscope.engine.report.checking import check
from shardscope.engine.report.identity import Identity, identities

USER = Identity("the user", "alice", anywhere=False)
PATH = Identity("a path", "nightjar-project", anywhere=True)


def member(**fields: object) -> dict[str, bytes]:
    return {"report.json": json.dumps(fields).encode()}


@pytest.mark.parametrize(
    "members",
    [
        member(a={"b": ["x", "of Alice."]}),
        member(a="alice/model"),
        member(a="my-Nightjar-Projects"),
        {"README.txt": b"hello alice"},
        member(a="hf_abcdefghijklmnopqrstuvwxyz0123456789"),
        member(a="someone@example.com"),
        member(a="10.20.30.40"),
        member(password="x7"),
    ],
)
def test_what_must_not_be_there_is_found(members: dict[str, bytes]) -> None:
    with pytest.raises(Fault) as caught:
        check(members, [USER, PATH])

    assert caught.value.finding.code == "report.identity"
    assert "alice" not in str(caught.value.finding).lower()
    assert "nightjar" not in str(caught.value.finding).lower()


@pytest.mark.parametrize(
    "members", [member(a="malice and alices"), member(alice=1), member(a="0" * 64), member(a="2.3.0")]
)
def test_what_only_looks_alike_passes(members: dict[str, bytes]) -> None:
    check(members, [USER, PATH, Identity("the environment", "2.3.0", anywhere=False)], public=["2.3.0"])


def test_what_a_person_gave_may_be_a_folder_and_not_the_user() -> None:
    check(
        member(id="acme/nightjar-project", text="acme/nightjar-project at 1"),
        [USER, PATH],
        given=["acme/nightjar-project"],
    )
    with pytest.raises(Fault):
        check(member(id="alice/model"), [USER], given=["alice/model"])
    with pytest.raises(Fault):
        check(member(id="x"), [], given=["hf_abcdefghijklmnopqrstuvwxyz0123456789"])


def test_the_user_the_machine_the_folders_and_the_environment_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "zephyr-runs" / "ckpt"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder.parent)
    environment = {
        "USER": "xiomara",
        "HOME": "/home/xiomara",
        "KEY": "q7-Zulu",
        "PATH": "/usr/bin:/opt/hoopoe/bin",
        "N": "8",
        "SSH": "10.20.30.40 22 22",
    }

    found = {each.value: each.kind for each in identities([str(folder)], environment)}

    assert found["xiomara"] == "the user"
    assert found["q7-zulu"] == found["zulu"] == found["hoopoe"] == "the environment"
    assert found["10.20.30.40"] == "the environment"
    assert found["zephyr-runs"] == found["zephyr"] == "a path"
    assert found[str(folder).lower()] == "a path"
    assert not {"8", "22", "usr", "bin", "/usr/bin", "home", "root"} & set(found)
    host = os.uname().nodename.lower()
    assert host in found or host.isalpha() or len(host) < 3
