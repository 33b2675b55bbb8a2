"""What tests of decoded torch files share: fixtures compared bit for bit, and the checksums of their records."""

from pathlib import Path

from shardscope.engine.formats.decode.record_checks import Checked, check_records
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.limits import Limits
from shardscope.engine.source.source import Source
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES


def compare(fixture: str) -> Found:
    """Decode a fixture, compare every tensor that it should have bit for bit, and return what was found."""
    found = decode(FIXTURES / fixture / "checkpoint")
    for name, (dtype, shape, data) in expected(FIXTURES / fixture).items():
        tensor = found.named(name)
        assert (tensor.dtype, tensor.shape) == (dtype, shape), name
        assert value(found, tensor) == data, name
    return found


def named(found: Found, code: str) -> dict[str, object]:
    """Return the parameters of the one blocker of that code."""
    (item,) = (item for item in found.blockers if item.code == code)
    return dict(item.params)


def value_of(found: Found, name: str) -> bytes:
    """Return the bytes of the tensor of that name."""
    return value(found, found.named(name))


def checked(path: Path, found: Found) -> Checked:
    """Compare the checksums of a checkpoint that was decoded; what is reported takes the place of its blockers."""
    with Source(path, limits=Limits(), hf_cache=False) as source:
        probe = Probe(source, source.walk(), Limits())
        result = check_records(probe, found.tensors)
        found.blockers[:] = probe.blockers
    return result
