#pragma once

/// Bodies of the ops of family io.

#include <dflow/ops/io/files.ipp>
#include <dflow/ops/io/reader.ipp>
