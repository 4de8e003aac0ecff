#include <dflow/ops/io/files.ipp>
#include <dflow/ops/io/reader.ipp>
