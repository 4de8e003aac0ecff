#include <dflow/graph/graph_def.ipp>
#include <dflow/graph/graph_def_archive.ipp>
#include <dflow/graph/graph_def_json.ipp>
