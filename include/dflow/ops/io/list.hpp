#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/io/files.hpp>
#include <dflow/ops/io/reader.hpp>

namespace dflow {

using ReaderOps = TypeList<WholeFileReaderOp, TextLineReaderOp, FixedLengthRecordReaderOp, TFRecordReaderOp,
                           IdentityReaderOp, ReaderRead, ReaderReadUpTo, ReaderNumRecordsProduced,
                           ReaderNumWorkUnitsCompleted, ReaderSerializeState, ReaderRestoreState, ReaderReset>;

using FileOps = TypeList<ReadFile, WriteFile, MatchingFiles, ImmutableConst>;

/// The family's ops in the standard table.
using IoOps = concat_t<ReaderOps, FileOps>;

}  // namespace dflow
