#!/usr/bin/env python3
"""tests/consumers/exports.py names the symbols of a shared library that no public header declares."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "consumers/exports.py"

# A public header, one that it includes, and an internal one.
HEADERS = {
    "public_headers.txt": "# Sessions.\nsession.hpp\n",
    "session.hpp": "#include <dflow/parts.hpp>\nnamespace dflow { struct Session { Session(); virtual ~Session(); struct State; }; }\n",
    "parts.hpp": "namespace dflow::detail { int part(); template <class T> bool operator==(const T*, Session&); }\n",
    "secret.hpp": "namespace dflow { int secret(); struct Hidden { int hides(); }; }\n",
}
BODY = """
namespace dflow {
struct Session { Session(); virtual ~Session(); struct State { int of_it(); }; };
Session::Session() {}
Session::~Session() {}
int Session::State::of_it() { return 0; }
namespace detail { int part() { return 1; } }
template <class T> bool operator==(const T*, Session&) { return true; }
template bool operator==<int>(const int*, Session&);
}
"""


class Exports(unittest.TestCase):
    def problems(self, more):
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root, "include/dflow")
            folder.mkdir(parents=True)
            for name, text in HEADERS.items():
                (folder / name).write_text(text)
            source, library = Path(root, "library.cpp"), Path(root, "library.so")
            source.write_text(BODY + more)
            subprocess.run([os.environ.get("CXX", "g++"), "-shared", "-fPIC", "-w", source, "-o", library], check=True)
            run = subprocess.run([sys.executable, SCRIPT, library, root], capture_output=True, text=True)
        *problems, summary = run.stdout.splitlines()
        self.assertTrue(summary.startswith("exports: "), run.stdout + run.stderr)
        self.assertEqual(run.returncode, 1 if problems else 0)
        return problems

    def test_what_public_headers_declare_with_its_members_is_in_order(self):
        self.assertEqual(self.problems(""), [])

    def test_what_only_an_internal_header_declares(self):
        problems = self.problems("namespace dflow { int secret() { return 1; } struct Hidden { int hides(); }; int Hidden::hides() { return 1; } }")
        self.assertEqual(problems, ["in no public header (Hidden): dflow::Hidden::hides()", "in no public header (secret): dflow::secret()"])

    def test_what_is_not_of_dflow(self):
        self.assertEqual(self.problems("namespace other { struct A {}; int f(A*) { return 1; } }"), ["not of dflow: other::f(other::A*)"])


if __name__ == "__main__":
    unittest.main()
