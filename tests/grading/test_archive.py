import io
import tarfile

import pytest

from mpilab.errors import InputError
from mpilab.grading.run import pack, unpack


def tar(*entries):
    """A tar of (name, changes of its TarInfo) entries, each with the content b'data'."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, changes in entries:
            entry = tarfile.TarInfo(name)
            entry.size = 4
            for attribute, value in changes.items():
                setattr(entry, attribute, value)
            archive.addfile(entry, io.BytesIO(b"data") if entry.size else None)
    return stream.getvalue()


def test_what_is_packed_is_unpacked():
    files = {"a.bin": b"\0" * 512, "sub/b": b"", "sub/c.bin": b"x" * 513}
    assert unpack(pack(files), ["*"]) == files


def test_only_what_matches_is_unpacked():
    stream = pack({"a.bin": b"1", "sub/b.bin": b"2", "c.txt": b"3"})
    assert unpack(stream, ["*.bin"]) == {"a.bin": b"1", "sub/b.bin": b"2"}


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "..", "."])
def test_paths_that_lead_out_are_passed_over(name):
    assert unpack(tar((name, {}), ("good", {})), ["*"]) == {"good": b"data"}
    with pytest.raises(InputError, match="path inside the work directory"):
        pack({name: b""})


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_links_and_devices_are_passed_over(kind):
    link = {"type": kind, "size": 0, "linkname": "/etc/passwd"}
    assert unpack(tar(("link", link), ("good", {})), ["*"]) == {"good": b"data"}


def test_a_sparse_file_is_not_blown_up():
    entry = tarfile.TarInfo("sparse")
    entry.type = tarfile.GNUTYPE_SPARSE
    assert unpack(entry.tobuf(tarfile.GNU_FORMAT) + tar(("good", {})), ["*"]) == {"good": b"data"}


def test_a_size_beyond_the_stream_ends_the_reading():
    entry = tarfile.TarInfo("huge")
    entry.size = 1 << 40
    stream = tar(("good", {}))[:1024] + entry.tobuf(tarfile.GNU_FORMAT) + b"x" * 1024
    assert unpack(stream, ["*"]) == {"good": b"data"}


def test_a_negative_size_ends_the_reading():
    entry = tarfile.TarInfo("negative")
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 11 + b"\x00"  # GNU's base 256, here -256
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert tarfile.TarInfo.frombuf(bytes(header), "utf-8", "strict").size < 0
    assert unpack(bytes(header) + tar(("late", {})), ["*"]) == {}


@pytest.mark.parametrize("stream", [b"", b"x" * 100, b"x" * 5000, b"\0" * 5000])
def test_what_is_no_tar_holds_no_files(stream):
    assert unpack(stream, ["*"]) == {}
