#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/graph/graph_def.ipp>
#include <dflow/graph/graph_def_archive.ipp>
#include <dflow/graph/graph_def_json.ipp>
