"""Needs nothing: the picture of what a job used."""

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from slurmk8s.results import picture
from slurmk8s.results.strict import Fields, Malformed
from slurmk8s.results.summary import from_json
from slurmk8s.results.usage import CardCourse, Course, read_course, trend

SVG = "{http://www.w3.org/2000/svg}"
COURSE = Course(
    seconds=(0.0, 5.0, 10.0, 15.0),
    cpu_cores=(1.0, 2.0, 4.0, 2.0),
    memory_bytes=(1e9, 2e9, 4e9, 4e9),
    gpus=(CardCourse("0", (50.0, None, 100.0, 0.0), (1e9, 1e9, 2e9, 2e9), 80 << 30),),
)
USAGE = {
    "samples": 4,
    "cpu_seconds": 45.0,
    "cpu_cores": 2.3,
    "cpu_cores_high": 4.0,
    "cpu_trend": "",
    "memory_peak_bytes": 4_000_000_000,
    "memory_trend": "",
    "gpus": [
        {
            "name": "0",
            "model": "",
            "utilisation": 50.0,
            "memory_peak_bytes": 2_000_000_000,
            "memory_bytes": 80 << 30,
            "trend": "",
        }
    ],
    "notes": [],
}


def drawn(make_summary: Any, course: Course = COURSE, **changes: Any) -> ET.Element:
    return ET.fromstring(picture.svg(from_json(make_summary(usage=USAGE, **changes)), course))


def test_each_resource_has_a_line_up_to_what_the_job_had(make_summary: Any) -> None:
    page = drawn(make_summary)
    lines = [line.get("points", "") for line in page.iter(f"{SVG}polyline")]
    assert len(lines) == 5  # CPUs, memory, the GPU's two pieces around what is not known, its memory
    tops = [float(point.split(",")[1]) for point in lines[0].split()]
    assert min(tops) == picture.TOP  # 4 of 4 CPUs touch the line
    words = [text.text for text in page.iter(f"{SVG}text")]
    assert "4 asked for" in words
    assert "peak 3.7 GiB of 8.0 GiB" in words
    assert "limit 8.0 GiB" in words


def test_it_lies_on_a_sheet_of_its_own_and_brings_nothing_along(make_summary: Any) -> None:
    page = drawn(make_summary)
    sheet = page.find(f"{SVG}rect")
    assert sheet is not None
    assert (sheet.get("fill"), sheet.get("width"), sheet.get("height")) == (
        "#ffffff",
        page.get("width"),
        page.get("height"),
    )
    assert {element.tag.removeprefix(SVG) for element in page.iter()} <= {
        *("svg", "title", "rect", "text", "path", "polygon", "polyline")
    }
    text = ET.tostring(page, encoding="unicode")
    assert not re.search(r"href|url\(|@import|script|on[a-z]+=", text)


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a\x1b[31m\x00b", "]]>&amp;", "학습" * 100, "\ud800"])
def test_no_name_breaks_it(make_summary: Any, name: str) -> None:
    page = drawn(make_summary, name=name)
    assert page.find(f"{SVG}script") is None


def test_more_than_was_asked_for_is_drawn_to_its_own_height(make_summary: Any) -> None:
    """A node may let a job compute on idle CPUs of others."""
    course = Course((0.0, 5.0), (8.0, 8.0), (1e9, 1e9))
    page = drawn(make_summary, course)
    assert "4 asked for" not in [text.text for text in page.iter(f"{SVG}text")]


def test_one_moment_is_drawn_too(make_summary: Any) -> None:
    drawn(make_summary, Course((0.0,), (None,), (1e9,)))


def test_a_row_of_blocks() -> None:
    assert trend([0, 1, 2, 4, 8], 8) == "▁▂▃▅█"
    assert trend([1.0, None, 99.0], 1) == "█ █"
    assert trend([], 8) == ""
    assert trend([0.0, 0.0], 0) == "▁▁"
    assert len(trend(list(range(1000)), 1000)) == 40
    assert trend([0] * 500 + [8] * 500, 8) == "▁" * 20 + "█" * 20


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": []},
        {"seconds": [0, None]},
        {"cpu_cores": [1]},
        {"memory_bytes": ["1", 2]},
        {"gpus": [{"name": "0"}]},
        {"gpus": {}},
        {"seconds": [0] * 1001},
        {"surprise": 1},
    ],
)
def test_anything_else_is_not_drawn(change: dict[str, Any]) -> None:
    document = {"seconds": [0, 1], "cpu_cores": [1, 1], "memory_bytes": [1, None], "gpus": [], **change}
    with pytest.raises(Malformed):
        read_course(Fields(document, "course"))
