#!/usr/bin/env python3
"""<dflow/dflow.hpp> brings the API of clusters, and no header of a library that only dflow's own sources need."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++") or "c++"


def dependencies(text):
    """The headers that a compiler reads for this text."""
    command = [COMPILER, "-std=c++20", f"-I{INCLUDE}", "-M", "-x", "c++", "-"]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return run.stdout.replace("\\\n", " ").split()


class UmbrellaDependencies(unittest.TestCase):
    def test_umbrella_parses_no_other_library(self):
        found = dependencies("#include <dflow/dflow.hpp>\n")
        heavy = re.compile(r"/(asio|boost|Eigen|cereal|nlohmann|rapidjson|openssl|oneapi)[/.]|/(dnnl|zlib)[\w.]*$")
        own = str(INCLUDE)
        self.assertEqual([path for path in found if heavy.search(path) and not path.startswith(own)], [])

    def test_umbrella_parses_nothing_slow(self):
        # Half a second of each user's compile (g++ 12): of the standard library, and of our own what graphs are inside.
        found = dependencies("#include <dflow/dflow.hpp>\n")
        slow = re.compile(r"/c\+\+/[\w.]+/(algorithm|chrono|filesystem|format|fstream|future|iomanip|iostream|random|ranges|regex|"
                          r"shared_mutex)$|/dflow/graph/graph_store\.hpp$")
        self.assertEqual([path for path in found if slow.search(path)], [])

    def test_umbrella_brings_clusters(self):
        found = dependencies("#include <dflow/dflow.hpp>\n")
        for header in ("net/cluster_spec.hpp", "net/server.hpp"):
            self.assertIn(str(INCLUDE / "dflow" / header), found)

    def test_tokens_of_asio_have_a_header_of_their_own(self):
        found = dependencies("#include <dflow/net/asio.hpp>\n")
        self.assertTrue(any("/asio/async_result.hpp" in path for path in found))


if __name__ == "__main__":
    unittest.main()
