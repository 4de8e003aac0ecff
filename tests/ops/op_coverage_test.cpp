#include "op_runner.hpp"

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// An op for which the oracle has no values.
struct OpWithoutRows {
  std::string_view op, reason;
};

constexpr auto ops_without_rows = std::to_array<OpWithoutRows>({
    {"Function", "begins a body; tests/session/control_flow/control_flow_test.cpp"},
    {"FunctionArgument", "stands in a body; tests/session/control_flow/control_flow_test.cpp"},
    {"FunctionResults", "ends a body; tests/session/control_flow/control_flow_test.cpp"},
    {"Call", "runs a function; tests/session/control_flow/control_flow_test.cpp"},
    {"If", "runs functions; tests/session/control_flow/control_flow_test.cpp"},
    {"Case", "runs functions; tests/session/control_flow/control_flow_test.cpp"},
    {"While", "runs functions; tests/session/control_flow/control_flow_test.cpp"},
    {"Frames", "passes on what is alive; tests/session/control_flow/frames_test.cpp"},
    {"Switch", "passes on what is alive; tests/session/control_flow/frames_test.cpp"},
    {"Merge", "passes on what is alive; tests/session/control_flow/frames_test.cpp"},
    {"Enter", "passes on what is alive; tests/session/control_flow/frames_test.cpp"},
    {"Exit", "passes on what is alive; tests/session/control_flow/frames_test.cpp"},
    {"NextIteration", "passes on what is alive; tests/session/control_flow/frames_test.cpp"},
    {"LoopCond", "passes on what is alive; tests/session/control_flow/frames_test.cpp"},
    {"EmptyTensorList", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListReserve", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListLength", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListResize", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListFromTensor", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListStack", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListConcatV2", "works on lists; tests/session/control_flow/list_concat_test.cpp"},
    {"TensorListSplit", "works on lists; tests/session/control_flow/list_concat_test.cpp"},
    {"TensorListToTensor", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListGetItem", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListSetItem", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListPushBack", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListPopBack", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListGather", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListGatherRows", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListScatter", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListSum", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListOne", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListOneList", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"TensorListUnset", "works on lists; tests/session/control_flow/tensor_array_test.cpp"},
    {"KeptValue", "stands for what a function has made; tests/session/control_flow/control_flow_test.cpp"},
    {"KeptListElement", "a list; tests/session/control_flow/control_flow_gradients_test.cpp"},
    {"KeptList", "stands for what a function has made; tests/session/control_flow/control_flow_test.cpp"},
    {"KeptListPush", "takes any value; tests/session/kept_in_frames_test.cpp"},
    {"KeptCount", "tells what ran before; tests/session/control_flow/control_flow_test.cpp"},
    {"CallTape", "takes any values; tests/session/control_flow/recursion_test.cpp"},
    {"KeptElement", "reads what a loop has kept; tests/session/control_flow/control_flow_test.cpp"},
    {"KeptHandleElement", "reads what a loop has kept; tests/session/control_flow/control_flow_test.cpp"},
    {"Print", "passes on what it is given; tests/ops/print_test.cpp"},
    {"DecodeRaw", "reads bytes that JSON has not; tests/ops/parsing/decode_raw_test.cpp"},
    {"DecodeCSV", "has outputs of any types; tests/ops/parsing/decode_csv_test.cpp"},
    {"DecodeJSONExample", "gives bytes that JSON has not; tests/ops/parsing/parse_example_test.cpp"},
    {"ParseExample", "reads bytes that JSON has not; tests/ops/parsing/parse_example_test.cpp"},
    {"ParseSingleExample", "reads bytes that JSON has not; tests/ops/parsing/parse_example_test.cpp"},
    {"ParseSingleSequenceExample", "reads bytes that JSON has not; tests/ops/parsing/parse_example_test.cpp"},
    {"ScalarSummary", "gives bytes that JSON has not; tests/ops/summary/summary_test.cpp"},
    {"HistogramSummary", "gives bytes that JSON has not; tests/ops/summary/summary_test.cpp"},
    {"ImageSummary", "gives bytes that JSON has not; tests/ops/summary/summary_test.cpp"},
    {"AudioSummaryV2", "gives bytes that JSON has not; tests/ops/summary/summary_test.cpp"},
    {"TensorSummaryV2", "gives bytes that JSON has not; tests/ops/summary/summary_test.cpp"},
    {"MergeSummary", "gives bytes that JSON has not; tests/ops/summary/summary_test.cpp"},
    {"NoOp", "has no values; tests/ops/control_test.cpp"},
    {"_Send", "its value goes to the rendezvous; tests/kernels/send_recv_kernel_test.cpp"},
    {"_FusedMatMul", "stands for others, whose bits it has; tests/passes/fusion/fuse_test.cpp"},
    {"_FusedConv2D", "stands for others, whose bits it has; tests/passes/fusion/fuse_test.cpp"},
    {"_Recv", "its value comes from the rendezvous; tests/kernels/send_recv_kernel_test.cpp"},
    {"AllReduce", "has members on devices; tests/session/collectives_test.cpp"},
    {"AllGather", "has members on devices; tests/session/collectives_test.cpp"},
    {"CollectiveBroadcast", "has members on devices; tests/session/collectives_test.cpp"},
    {"RandomUniform", "has no inputs but shapes; its bits are TensorFlow's in tests/ops/random_test.cpp"},
    {"RandomUniformInt", "has no inputs but bounds; its bits are TensorFlow's in tests/ops/random_test.cpp"},
    {"RandomStandardNormal", "has no inputs but shapes; its bits are TensorFlow's in tests/ops/random_test.cpp"},
    {"TruncatedNormal", "has no inputs but shapes; its bits are TensorFlow's in tests/ops/random_test.cpp"},
    {"RandomShuffle", "draws its order; TensorFlow's are in tests/ops/random_shuffle_test.cpp"},
    {"Multinomial", "draws classes; TensorFlow's are in tests/ops/candidates_test.cpp"},
    {"UniformCandidateSampler", "draws classes; TensorFlow's are in tests/ops/candidates_test.cpp"},
    {"LogUniformCandidateSampler", "draws classes; TensorFlow's are in tests/ops/candidates_test.cpp"},
    {"LearnedUnigramCandidateSampler", "draws classes; TensorFlow's are in tests/ops/candidates_test.cpp"},
    {"ThreadUnsafeUnigramCandidateSampler", "draws classes; TensorFlow's are in tests/ops/candidates_test.cpp"},
    {"FixedUnigramCandidateSampler", "draws classes; TensorFlow's are in tests/ops/candidates_test.cpp"},
    {"CountUpTo", "tells what ran before; tests/ops/count_test.cpp"},
    {"TemporaryVariable", "its handle has no values; tests/ops/session_tensors_test.cpp"},
    {"DestroyTemporaryVariable", "tells what ran before; tests/ops/session_tensors_test.cpp"},
    {"SessionTensors", "meets other steps; tests/ops/session_tensors_test.cpp"},
    {"GetSessionHandle", "meets other steps; tests/ops/session_tensors_test.cpp"},
    {"GetSessionTensor", "meets other steps; tests/ops/session_tensors_test.cpp"},
    {"DeleteSessionTensor", "meets other steps; tests/ops/session_tensors_test.cpp"},
    {"FIFOQueue", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"PaddingFIFOQueueV2", "meets other steps; tests/ops/data_flow/queue_kinds_test.cpp"},
    {"RandomShuffleQueueV2", "meets other steps; tests/ops/data_flow/queue_kinds_test.cpp"},
    {"PriorityQueueV2", "meets other steps; tests/ops/data_flow/queue_kinds_test.cpp"},
    {"QueueEnqueue", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"QueueEnqueueMany", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"QueueDequeue", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"QueueDequeueMany", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"QueueDequeueUpTo", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"QueueClose", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"QueueIsClosed", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"QueueSize", "meets other steps; tests/ops/data_flow/queue_test.cpp"},
    {"Barrier", "meets other steps; tests/ops/data_flow/barrier_test.cpp"},
    {"BarrierInsertMany", "meets other steps; tests/ops/data_flow/barrier_test.cpp"},
    {"BarrierTakeMany", "meets other steps; tests/ops/data_flow/barrier_test.cpp"},
    {"BarrierClose", "meets other steps; tests/ops/data_flow/barrier_test.cpp"},
    {"BarrierReadySize", "meets other steps; tests/ops/data_flow/barrier_test.cpp"},
    {"BarrierIncompleteSize", "meets other steps; tests/ops/data_flow/barrier_test.cpp"},
    {"StagingArea", "meets other steps; tests/ops/data_flow/staging_test.cpp"},
    {"Stage", "meets other steps; tests/ops/data_flow/staging_test.cpp"},
    {"Unstage", "meets other steps; tests/ops/data_flow/staging_test.cpp"},
    {"StageSize", "meets other steps; tests/ops/data_flow/staging_test.cpp"},
    {"StageClear", "meets other steps; tests/ops/data_flow/staging_test.cpp"},
    {"MutableHashTable", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"HashTable", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"LookupTableFind", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"LookupTableInsert", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"LookupTableRemove", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"LookupTableSize", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"LookupTableExport", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"LookupTableImport", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"InitializeTable", "meets other steps; tests/ops/data_flow/lookup_table_test.cpp"},
    {"InitializeTableFromTextFile", "reads files; tests/ops/data_flow/lookup_table_test.cpp"},
    {"ConditionalAccumulator", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"SparseConditionalAccumulator", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"AccumulatorApplyGradient", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"SparseAccumulatorApplyGradient", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"AccumulatorTakeGradient", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"SparseAccumulatorTakeGradient", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"AccumulatorTakeRanks", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"SparseAccumulatorTakeRanks", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"AccumulatorSetGlobalStep", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"AccumulatorNumAccumulated", "meets other steps; tests/ops/data_flow/accumulator_test.cpp"},
    {"TokenBarrier", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierOpen", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierArrive", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierWait", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierCollect", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierAdvance", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierLeave", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierDropMissing", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierHold", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"TokenBarrierClose", "meets other steps; tests/ops/data_flow/token_barrier_test.cpp"},
    {"StalenessClock", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"StalenessClockJoin", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"StalenessClockLead", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"StalenessClockWait", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"StalenessClockTick", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"StalenessClockLeave", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"StalenessClockWatch", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"StalenessClockDropLate", "meets other steps; tests/ops/data_flow/staleness_clock_test.cpp"},
    {"WholeFileReaderV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"TextLineReaderV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"FixedLengthRecordReaderV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"TFRecordReaderV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"IdentityReaderV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReaderReadV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReaderReadUpToV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReaderNumRecordsProducedV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReaderNumWorkUnitsCompletedV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReaderSerializeStateV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReaderRestoreStateV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReaderResetV2", "meets other steps; tests/ops/io/reader_test.cpp"},
    {"ReadFile", "reads files; tests/ops/io/files_test.cpp"},
    {"WriteFile", "writes files; tests/ops/io/files_test.cpp"},
    {"ImmutableConst", "reads a file; tests/ops/io/files_test.cpp"},
    {"MatchingFiles", "finds files; tests/ops/io/files_test.cpp"},
    {"IsVariableInitialized", "tells what ran before; tests/ops/variable_test.cpp"},
    {"SaveV2", "writes files; tests/kernels/cpu/checkpoint/save_restore_test.cpp"},
    {"RestoreV2", "reads files; tests/kernels/cpu/checkpoint/save_restore_test.cpp"},
    {"MergeV2Checkpoints", "writes files; tests/kernels/cpu/checkpoint/save_restore_test.cpp"},
    {"RandomStreamHandle", "gives a handle; tests/kernels/cpu/checkpoint/resource_state_test.cpp"},
    {"ReadResourceState", "tells what ran before; tests/kernels/cpu/checkpoint/resource_state_test.cpp"},
    {"AssignResourceState", "changes what runs later; tests/kernels/cpu/checkpoint/resource_state_test.cpp"},
});

/// Ops that pass a row's inputs through the harness: each row is an expectation of theirs, too.
constexpr std::array<std::string_view, 3> carriers{"Placeholder", "Variable", "ReadVariable"};

/// Op, position of the type parameter, element type; -1 for an op without type parameters.
using Seen = std::set<std::tuple<std::string_view, int, DType>>;

void see(const Node& node, Seen& seen) {
  if (node.types.size == 0) seen.emplace(node.op->name, -1, DType::invalid);
  for (int p = 0; p < node.types.size; ++p) seen.emplace(node.op->name, p, node.types[static_cast<std::size_t>(p)]);
}

/// The ops and element types that the oracle's rows cover, by the nodes that the rows build.
Seen rows_of_oracle(std::vector<std::string>& failures) {
  Seen seen;
  for (const OracleCase& oracle_case : oracle_cases()) {
    for (const DType t : oracle_case.types) {
      try {
        const auto built = build_case(oracle_case, t, InputsAs::known_feeds);
        for (std::size_t i = 0; i < built->graph.num_nodes(); ++i) {
          const Node& node = built->graph.node(static_cast<NodeId>(i));
          const bool is_carrier = std::find(carriers.begin(), carriers.end(), node.op->name) != carriers.end();
          if (is_carrier || node.op->name == oracle_case.op) see(node, seen);
        }
      } catch (const std::exception& error) {
        failures.push_back(oracle_case.title(t) + ": " + error.what());
      }
    }
  }
  return seen;
}

/// The element types that type parameter `p` allows and no row has.
std::string missing_types(const OpDef& op, int p, const Seen& seen) {
  std::string missing;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const auto type = static_cast<DType>(bit);
    if (op.type_params[static_cast<std::size_t>(p)].allows(type) && !seen.contains({op.name, p, type})) {
      missing += (missing.empty() ? "" : ", ") + std::string(dtype_name(type));
    }
  }
  return missing;
}

}  // namespace

TEST_CASE("every op of the standard table has expected values for each of its element types", "[ops]") {
  std::vector<std::string> failures;
  const Seen seen = rows_of_oracle(failures);
  std::set<std::string_view> used;
  const auto report = [&](const OpDef& op, std::string_view param, const std::string& what) {
    const auto is_it = [&](const OpWithoutRows& without) { return without.op == op.name; };
    if (std::any_of(ops_without_rows.begin(), ops_without_rows.end(), is_it)) {
      used.insert(op.name);
    } else {
      failures.push_back(str_cat(op.name, " ", param, ": tests/oracle has no row of ", what,
                                 "; add one in tools/oracle, or an exception with its reason here"));
    }
  };
  standard_op_table().for_each([&](const OpDef& op) {
    if (op.type_params.empty() && !seen.contains({op.name, -1, DType::invalid})) report(op, "", "it");
    for (std::size_t p = 0; p < op.type_params.size(); ++p) {
      const std::string missing = missing_types(op, static_cast<int>(p), seen);
      if (!missing.empty()) report(op, op.type_params[p].name, missing);
    }
  });
  for (const OpWithoutRows& without : ops_without_rows) {
    if (!used.contains(without.op)) failures.push_back(str_cat(without.op, " is excepted, and has rows or is no op"));
  }
  for (const std::string& failure : failures) UNSCOPED_INFO(failure);
  CHECK(failures.empty());
}
