#!/usr/bin/env python3
"""Links of the pages lead to files and sections that exist, and docs/README.md lists every page."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks/README.md", ROOT / "examples/data/README.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(page):
    """The anchors of the sections of a page, as GitHub makes them of the titles."""
    found = set()
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        found.add(anchor if anchor not in found else f"{anchor}-{sum(one.startswith(anchor) for one in found)}")
    return found


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        count = 0
        for page in PAGES:
            for target in LINK.findall(without_code(page.read_text())):
                if "://" in target:
                    continue
                name, _, section = target.partition("#")
                path = (page.parent / name).resolve() if name else page
                where = f"{page.relative_to(ROOT)}: {target}"
                self.assertTrue(path.exists(), where)
                if section and path.suffix == ".md":
                    self.assertIn(section, anchors(path), where)
                count += 1
        self.assertGreater(count, 200)

    def test_index_lists_every_page(self):
        index = ROOT / "docs/README.md"
        listed = set(re.findall(r"^\| \[[^\]]*\]\(([\w.-]+\.md)\)", index.read_text(), re.MULTILINE))
        pages = {path.name for path in index.parent.glob("*.md")} - {index.name}
        self.assertEqual(pages - listed, set())


if __name__ == "__main__":
    unittest.main()
