"""Cluster descriptions are read completely, or rejected with file, line and remedy."""

import pytest

from mpilab.errors import InputError
from mpilab.hosts import description
from mpilab.hosts.description import Description, Link, as_text, parse, read
from mpilab.hosts.hostfile import FOLDER, Host, expand
from mpilab.hosts.hostfile import read as read_hostfile
from mpilab.hosts.places import Place

TEXT = """\
title = "Two switches"

[links.host]
rate = "1gbit"
latency = "5us"

[links.group]
rate = "200 Mbit"

[[group]]
name = "left"
hosts = ["n1", "n2"]
slots = 2

[[group]]
name = "right"
hosts = [
    "n3",  # the big one
    "n[4-5]",
]
slots = [8, 2, 2]
"""


def test_hosts_groups_slots_and_links_are_read():
    found = parse(TEXT, "clusters/two.toml")
    assert found == Description(
        "two",
        "Two switches",
        (
            Host("n1", 2, None, "left"),
            Host("n2", 2, None, "left"),
            Host("n3", 8, None, "right"),
            Host("n4", 2, None, "right"),
            Host("n5", 2, None, "right"),
        ),
        Link(1e9, 5e-6),
        Link(2e8, 0.0),
    )
    assert found.slots == 16
    assert list(found.groups) == ["left", "right"]
    assert found.places(["n4", "n1"]) == (Place("n4", "right"), Place("n1", "left"))


def test_without_links_and_slots_there_is_no_limit_and_one_rank_a_host():
    found = parse('[[group]]\nname = "all"\nhosts = "n[1-3]"\n')
    assert (found.host_link, found.group_link) == (Link(None, 0.0), Link(None, 0.0))
    assert [host.slots for host in found.hosts] == [1, 1, 1]
    assert found.title == ""


@pytest.mark.parametrize(
    "rate, bits", [("1gbit", 1e9), ("2.5 Gbit", 2.5e9), ("64kbit", 64e3), ("9bit", 9.0)]
)
@pytest.mark.parametrize(
    "latency, seconds", [("0us", 0.0), ("0.1us", 1e-7), ("20 ms", 0.02), ("3ns", 3e-9), ("1s", 1.0)]
)
def test_rates_and_latencies_have_their_units_and_are_written_back(rate, bits, latency, seconds):
    text = TEXT.replace('"1gbit"', f'"{rate}"').replace('"5us"', f'"{latency}"')
    found = parse(text)
    assert found.host_link == Link(bits, seconds)
    assert parse(as_text(found)) == found


@pytest.mark.parametrize(
    "text, names",
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("csews[1-3,7]", ["csews1", "csews2", "csews3", "csews7"]),
        ("n[08-10].example", ["n08.example", "n09.example", "n10.example"]),
        ("n[2]", ["n2"]),
    ],
)
def test_lists_of_hosts_may_be_written_in_short(text, names):
    assert expand(text) == names


@pytest.mark.parametrize(
    "old, new, line, words",
    [
        ('title = "Two', 'titel = "Two', 1, "unknown key 'titel'; known are group, links, title"),
        ('title = "Two switches"', "title = 2", 1, "title = 2 is not text; write it in quotes"),
        ("[links.group]", "[links.rack]", 7, "unknown key 'rack'; known are group, host"),
        ('latency = "5us"', 'delay = "5us"', 5, "unknown key 'delay'; known are latency, rate"),
        ('"200 Mbit"', '"fast"', 8, "rate = 'fast' is not understood; write a number and one of"),
        ('"200 Mbit"', "200", 8, 'rate = 200 is not understood; .* e.g. "200mbit"'),
        ('"200 Mbit"', '"-1mbit"', 8, "rate = '-1mbit' is not understood"),
        ('"200 Mbit"', '"0mbit"', 8, "rate: 0 lets nothing through"),
        ('"200 Mbit"', '"5us"', 8, "rate = '5us' is not understood"),
        ('"5us"', '"-5us"', 5, "latency = '-5us' is not understood; .* one of s, ms, us, ns"),
        ('"5us"', '"5 minutes"', 5, "latency = '5 minutes' is not understood"),
        ('"n2"]', '"n1"]', 12, "the host 'n1' is already listed; name each host once"),
        ('"n3",', '"n2",', 18, "the host 'n2' is already listed"),
        ('"n[4-5]"', '"n[3-4]"', 19, "the host 'n3' is already listed"),
        ('"n[4-5]"', '"n[5-4]"', 19, "5 is above 4; write 'n\\[4-5\\]'"),
        ('"n[4-5]"', '"n[4-]"', 19, "'4-' is not a range of numbers; write e.g. 'n\\[1-3,7\\]'"),
        ('"n[4-5]"', '"n[4-5"', 19, "only one pair of \\[ \\] is supported"),
        ('"n[4-5]"', '"n[1-99999999]"', 19, "more than 4096 hosts"),
        ('"n[4-5]"', "4", 19, "4 is not a valid host name; write e.g."),
        ('"n[4-5]"', '"a host"', 19, "'a host' is not a valid host name"),
        ('"n[4-5]"', '"n4:5"', 19, "'n4:5' is not a valid host name"),
        ('["n1", "n2"]', "[]", 12, "the group has no hosts; write e.g. hosts ="),
        ('hosts = ["n1", "n2"]\n', "", 10, "the group has no hosts"),
        ('["n1", "n2"]', "7", 12, "7 is not a valid host name"),
        ("slots = 2", "slots = 0", 13, "slots = 0: must be a whole number from 1 to 4096"),
        ("slots = 2", "slots = true", 13, "slots = True: must be a whole number"),
        ("slots = 2", 'slots = "2"', 13, "slots = '2': must be a whole number"),
        (
            "[8, 2, 2]",
            "[8, 2]",
            21,
            "slots for 2 hosts instead of 3; write one number for each, or a single one",
        ),
        ("[8, 2, 2]", "[\n8,\n-2,\n2]", 23, "slots = -2: must be a whole number"),
        ('name = "right"', 'name = "left"', 16, "two groups have the name 'left'; rename one"),
        ('name = "right"', 'name = "to the right"', 16, "group='to the right': not a name"),
        ('name = "right"', 'name = ""', 16, "group='': not a name"),
        ('name = "right"\n', "", 15, "the key 'name' is missing"),
        ('name = "right"', 'name = "right', 16, "not TOML: Illegal character"),
        ("slots = 2", "slots = 2\nslots = 3", 14, "not TOML: Cannot overwrite a value"),
        ("[8, 2, 2]", "[8, 2, 2", 21, "not TOML: "),
        ("[[group]]", "[group]", 15, "not TOML: "),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_remedy(old, new, line, words):
    assert old in TEXT
    with pytest.raises(InputError, match=f"^my/two.toml:{line}: .*{words}"):
        parse(TEXT.replace(old, new, 1), "my/two.toml")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "f:1: there is no \\[\\[group\\]\\] in it"),
        ('\n[group]\nname = "a"\n', "f:2: group is not a list of tables; write \\[\\[group\\]\\]"),
        ('links = "fast"\n', "f:1: links = 'fast' is not a table; write \\[links\\]"),
        ('\n[links]\nhost = "fast"\n', "f:3: host = 'fast' is not a table; write \\[links.host\\]"),
    ],
)
def test_a_file_of_another_form_is_told_what_to_write(text, words):
    with pytest.raises(InputError, match=words):
        parse(text, "f")


def test_lines_are_counted_alike_in_a_file_from_windows(tmp_path):
    (tmp_path / "two.toml").write_bytes(TEXT.replace('"n2"', '"n1"').replace("\n", "\r\n").encode())
    with pytest.raises(InputError, match="two.toml:12: the host 'n1' is already listed"):
        read(tmp_path / "two.toml")


def test_bare_names_are_those_of_the_kit_unless_there_is_such_a_file_here(tmp_path, monkeypatch):
    assert read("two-groups") == read("two-groups.toml") == read(FOLDER / "two-groups.toml")
    (tmp_path / "two-groups.toml").write_text('[[group]]\nname = "mine"\nhosts = "h"\n')
    monkeypatch.chdir(tmp_path)
    assert list(read("two-groups").groups) == ["mine"]


def test_a_mistake_in_a_file_of_the_kit_is_told_by_its_short_name(monkeypatch, tmp_path):
    monkeypatch.setattr(description, "FOLDER", tmp_path)
    (tmp_path / "odd.toml").write_text("[[group]]\n")
    with pytest.raises(InputError, match="^hostfiles/odd.toml:1: the key 'name' is missing"):
        read("odd")


def test_a_missing_description_is_told_with_those_there_are(tmp_path):
    with pytest.raises(InputError, match="five-groups: cannot be read .*No such file.*four-groups"):
        read("five-groups")
    (tmp_path / "picture.toml").write_bytes(b"\x89PNG\xff")
    with pytest.raises(InputError, match="it is not text"):
        read(tmp_path / "picture.toml")


@pytest.mark.parametrize("name", [path.name for path in FOLDER.glob("*.toml")])
def test_the_kit_s_descriptions_can_be_read_and_are_told_of(name):
    found = read(name)
    assert len(found.hosts) >= 2 and found.title
    assert parse(as_text(found), name) == found
    assert f"`{name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_example_of_the_readme_can_be_read():
    example = (FOLDER / "README.md").read_text(encoding="utf-8").split("```toml\n")[1]
    assert parse(example.split("```")[0]).slots == 4


def test_any_title_and_any_slots_are_written_back():
    hosts = (Host("n1", 3, None, "a.b"), Host("n2", 1, None, "a.b"), Host("n-3", 1, None, "7"))
    found = Description("odd", 'a "title"\twith \\ and é', hosts, Link(1 / 3, 1e-12), Link())
    assert parse(as_text(found), "odd") == found


def test_two_groups_has_the_hosts_and_groups_of_the_hostfile():
    def grouped(found):
        return [(host.name, host.group) for host in found.hosts]

    assert grouped(read("two-groups")) == grouped(read_hostfile("two-groups.txt"))
    assert read("two-groups").slots == 8


def test_the_cluster_of_the_benchmark_has_the_links_it_is_measured_on():
    found = read("four-groups")
    assert [len(hosts) for hosts in found.groups.values()] == [2, 2, 2, 2]
    assert found.slots == 16
    assert (found.host_link.rate, found.group_link.rate) == (1e9, 2e8)


def test_the_uplinks_of_the_fat_tree_are_as_fast_as_their_hosts_together():
    found = read("fat-tree")
    for hosts in found.groups.values():
        assert found.group_link.rate == len(hosts) * found.host_link.rate


def test_part_of_a_cluster_has_as_many_of_its_groups_as_possible():
    campus = read("campus")
    four = campus.part(hosts=4, ppn=1)
    assert [host.name for host in four.hosts] == ["csews1", "csews25", "csews31", "csews70"]
    assert four.slots == 4
    six = campus.part(hosts=6)
    assert [len(hosts) for hosts in six.groups.values()] == [2, 2, 1, 1]
    assert [host.name for host in six.hosts][:3] == ["csews1", "csews2", "csews25"]
    assert campus.part(hosts=16, ppn=8) == campus.part() == campus


def test_hosts_with_fewer_slots_keep_theirs():
    assert [host.slots for host in parse(TEXT).part(ppn=4).hosts] == [2, 2, 4, 2, 2]


@pytest.mark.parametrize(
    "wanted, words",
    [
        ({"hosts": 17}, "hosts=17: campus has 16; use 1 to 16"),
        ({"hosts": 0}, "hosts=0: campus has 16"),
        ({"ppn": 9}, "ppn=9: campus has 8; use 1 to 8"),
    ],
)
def test_more_than_there_is_is_refused(wanted, words):
    with pytest.raises(InputError, match=words):
        read("campus").part(**wanted)


def test_a_host_of_another_cluster_is_named():
    with pytest.raises(InputError, match="host 'n9': not in two-groups; it has n1, n2, n3, n4"):
        read("two-groups").places(["n1", "n9"])
