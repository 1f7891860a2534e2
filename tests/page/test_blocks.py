"""The block map: what the plan did with each block, why, and with the numbers of `explain`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from playwright.sync_api import Page, expect

from tests.page.browser import is_clean_everywhere, measuring_frames, screenshots
from tests.page.sql import run
from tests.server.conftest import Served

WHERE = "\"at\" >= timestamp '2024-01-04' and \"at\" <= timestamp '2024-01-05'"
QUERY = f"select zone, avg(fare) from taxi.trips where {WHERE} group by zone"
MANY = 1_000_000
STEP = {"level": "block", "predicate": "km > 3", "reason": "by range", "files": 0, "blocks": 9, "data_bytes": 9}
UNPACK = """const real = window.fetch;
window.fetch = async (...asked) => {
  const answer = await real(...asked);
  if (!String(asked[0]).includes("/blocks?")) return answer;
  return new Response(answer.body.pipeThrough(new DecompressionStream("gzip")));
};"""


def show(page: Page, sql: str = QUERY) -> Page:
    """The map of a statement that was run."""
    run(page, sql)
    page.get_by_role("tab", name="Blocks", exact=True).click()
    expect(page.locator(".map-legend").first).to_be_visible()
    return page


def words(page: Page) -> str:
    return " ".join(page.locator(".map-words").inner_text().split())


def counts(page: Page) -> dict[str, int]:
    """The counts beside the map, by verdict."""
    buttons = page.locator(".map-legend button").all()
    texts = [(one.locator(".map-label").inner_text(), one.locator(".map-count").inner_text()) for one in buttons]
    return {label: int(count.replace(",", "")) for label, count in texts}


def steps(page: Page) -> list[tuple[str, ...]]:
    """Level, files and blocks of each row of the plan's table."""
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator(".map-steps tbody tr").all()]
    return [(row[0], *(row[at].replace("−", "").replace(",", "") for at in (2, 3))) for row in rows]


def test_the_map_and_its_table_have_the_numbers_of_explain(page: Page, site: Served):
    show(page)
    plan = site.lake.table("taxi.trips").plan(["zone", "fare"], WHERE).to_dict()
    total, kept = plan["table"], plan["kept"]
    dropped = [(step["level"], str(step["files"] or ""), str(step["blocks"])) for step in plan["steps"]]
    assert steps(page) == [
        ("Table", str(total["files"]), str(total["blocks"])),
        *dropped,
        ("Read", str(kept["files"]), str(kept["blocks"])),
    ]
    assert counts(page) == {
        "Read and filtered": kept["blocks"] - kept["full_matches"],
        "Read, matches as a whole": kept["full_matches"],
        "Dropped by block statistics": sum(step["blocks"] for step in plan["steps"]),
    }
    expect(page.locator(".map-summary")).to_contain_text(
        f"{kept['blocks']} to read, {total['blocks'] - kept['blocks']} dropped"
    )


def test_the_keys_reach_every_block_and_say_why_it_was_dropped(page: Page):
    show(page)
    page.locator(".map-frame").focus()
    seen = []
    for _ in range(21):
        seen.append(words(page))
        page.keyboard.press("ArrowRight")
    assert len(set(seen)) == 21
    dropped = [one for one in seen if "Dropped by block statistics" in one]
    assert len(dropped) == 18
    conditions = ("\"at\" >= TIMESTAMP '2024-01-04 00:00:00'", "\"at\" <= TIMESTAMP '2024-01-05 00:00:00'")
    assert all("by range" in one and any(condition in one for condition in conditions) for one in dropped)
    assert all(".parquet, block " in one and "Rows" in one for one in seen)
    assert "2024-01-01 00:10:00 … 2024-01-01" in seen[0] or "2024-01-01 00:00:00 … 2024-01-01" in seen[0]
    page.keyboard.press("Home")
    page.keyboard.press("n")
    assert words(page) == seen[1]
    page.locator(".map-legend button", has_text="Read and filtered").press("Enter")
    expect(page.locator(".map-legend button[aria-pressed=true]")).to_have_count(1)
    page.locator(".map-frame").focus()
    page.keyboard.press("n")
    assert "Read and filtered" in words(page)


def test_the_mouse_shows_the_block_under_it(page: Page):
    show(page)
    box = page.locator(".map-frame canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    first = words(page)
    page.mouse.move(box["x"] + 30, box["y"] + 3)
    expect(page.locator(".map-title")).to_contain_text("block 1")
    assert words(page) != first


def test_each_scan_of_a_join_has_a_map(page: Page):
    show(page, "select count(*) from taxi.trips a join taxi.trips b using (id) where a.fare < 0.5 and b.km < 3")
    scans = page.get_by_role("group", name="Scans of the statement").get_by_role("button")
    expect(scans).to_have_count(2)
    texts = scans.all_inner_texts()
    assert ["km < 3" in one for one in texts].count(True) == 1, texts
    found = []
    for at in range(2):
        scans.nth(at).click()
        expect(scans.nth(at)).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".map-summary")).to_be_visible()
        found.append(tuple(sorted(counts(page).items())))
    assert all(sum(count for _, count in one) == 21 for one in found)


def test_the_slider_shows_the_same_condition_at_other_versions(page: Page, site: Served):
    show(page)
    slider = page.get_by_role("slider", name="Version")
    expect(page.locator(".map-versions output")).to_contain_text("Version 3, update")
    slider.press("ArrowLeft")
    slider.press("ArrowLeft")
    expect(page.locator(".map-summary")).to_contain_text("version 1:")
    assert sum(counts(page).values()) == 20
    kept = site.lake.table("taxi.trips").at(version=1).plan(["zone", "fare"], WHERE).to_dict()["kept"]
    assert steps(page)[-1] == ("Read", str(kept["files"]), str(kept["blocks"]))
    slider.press("Home")
    expect(page.locator(".map-summary")).to_contain_text("0 blocks of taxi.trips, version 0")


def test_a_map_is_ordered_by_any_column(page: Page):
    show(page)
    page.get_by_label("Order").select_option("min")
    page.locator(".map-order select").nth(1).select_option("id")
    page.locator(".map-frame").focus()
    bounds = []
    for _ in range(21):
        expect(page.locator(".map-words dt").nth(2)).to_have_text("id")
        bounds.append(int(page.locator(".map-words dd").nth(2).inner_text().split(" … ")[0]))
        page.keyboard.press("ArrowRight")
    assert bounds == sorted(bounds)
    assert len(set(bounds)) == 20  # one block has rows that an update wrote anew


def test_a_table_that_was_named_and_not_read_is_shown_as_not_asked_for(page: Page):
    show(page, "select max(id) from taxi.trips where false")
    assert counts(page) == {"Not asked for": 21}
    expect(page.locator(".map-summary")).to_contain_text("none was asked for")


def test_a_condition_is_planned_on_the_page_of_a_table(page: Page):
    page.get_by_role("treeitem", name="trips").press("Enter")
    page.get_by_role("tab", name="Blocks").click()
    expect(page.locator(".map-summary")).to_contain_text("21 to read, 0 dropped")
    condition = page.get_by_label("What would a condition read?")
    condition.fill("id < 1000")
    condition.press("Enter")
    expect(page.locator(".map-summary")).to_contain_text("1 to read, 20 dropped")
    condition.fill("nothing = 1")
    condition.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("nothing")


def test_everybody_can_use_the_map(page: Page):
    show(page)
    page.locator(".map-frame").focus()
    assert is_clean_everywhere(page) == {}
    screenshots(page, "blocks")


def test_a_million_blocks_are_drawn_at_once_and_hovered_without_a_stutter(
    page: Page, record_property: Callable[[str, object], None]
):
    packed, plan = gzip.compress(many_blocks(), 1), {"plans": [many_planned()]}
    page.add_init_script(UNPACK)
    page.route("**/v1/plan", lambda route: route.fulfill(json=plan))
    page.route("**/v1/tables/*/blocks?*", lambda route: route.fulfill(body=packed, content_type="application/gzip"))
    page.reload()
    page.get_by_role("treeitem", name="trips").press("Enter")
    page.get_by_role("tab", name="Blocks").click()
    canvas = page.locator(f"canvas[data-cells='{MANY}']")
    expect(canvas).to_be_visible()
    box = page.locator(".map-frame").bounding_box()
    assert box is not None
    with measuring_frames(page) as frames:
        for at in range(100):
            page.mouse.move(box["x"] + 5 + at * (box["width"] - 10) / 100, box["y"] + 5 + at)
    assert "Dropped by block statistics: km > 3 by range" in words(page) or "Read and filtered" in words(page)
    page.locator(".map-frame").focus()
    page.keyboard.press("Control+End")
    assert "f-000999.parquet, block 999" in words(page)
    drawn = canvas.get_attribute("data-drawn-ms")
    assert drawn is not None
    record_property("drawn_ms", drawn)
    print(f"a million blocks: drawn in {drawn} ms; while hovering {frames}")


def many_planned() -> dict[str, object]:
    total = {"files": 1000, "blocks": MANY, "rows": MANY, "data_bytes": MANY}
    kept = {**total, "blocks": 20_000, "fetch_bytes": 5, "full_matches": 0}
    about = {"scan": 0, "table": "taxi.trips", "version": 3, "columns": [], "predicate": None, "filter": None}
    return {**about, "total": total, "kept": kept, "steps": [STEP]}


def many_blocks() -> bytes:
    """A map as the service sends it, of more blocks than a test can write."""
    at = np.arange(MANY)
    files = pa.array([f"f-{number:06d}.parquet" for number in range(1000)])
    verdicts = np.where(at % 50 == 0, 0, 5).astype(np.uint8)
    rows = pa.table(
        {
            "file": pa.DictionaryArray.from_arrays(pa.array(at // 1000, pa.int32()), files),
            "block": pa.array(at % 1000, pa.uint32()),
            "rows": pa.array(at % 7),
            "bytes": pa.array(at % 11),
            "verdict": pa.array(verdicts),
            "step": pa.array(np.zeros(MANY, np.uint16), mask=verdicts == 0),
            "min": pa.array(at),
            "max": pa.array(at),
        }
    )
    facts = {"table": "taxi.trips", "version": 3, "column": "id", "steps": [STEP], "block_count": MANY}
    rows = rows.replace_schema_metadata({"underlay": json.dumps(facts)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        for batch in rows.to_batches(max_chunksize=1 << 16):
            stream.write_batch(batch)
    return sink.getvalue().to_pybytes()
