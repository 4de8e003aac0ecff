// The ops of the CPU that a GPU computes too, and the reasons for the rest.
#include "catch.hpp"

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/kernels/cpu/standard_kernels.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>

#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;

namespace {

/// All combinations of the element types that an op allows.
std::vector<TypeArgs> all_types(const OpDef& op) {
  std::vector<TypeArgs> all{TypeArgs{}};
  for (const TypeParamDef& param : op.type_params) {
    std::vector<TypeArgs> longer;
    for (const TypeArgs& types : all) {
      for (int t = 0; t < 32; ++t) {
        if (!param.allows(static_cast<DType>(t))) continue;
        longer.push_back(types);
        longer.back().push_back(static_cast<DType>(t));
      }
    }
    all = std::move(longer);
  }
  return all;
}

bool has_strings(const TypeArgs& types) {
  for (int i = 0; i < types.size; ++i) {
    if (types[i] == DType::string) return true;
  }
  return false;
}

/// Element types that no node has together: the op's shape function refuses them, and on the CPU their kernels fail.
bool are_refused(const OpDef& op, const TypeArgs& types) {
  if (op.name.find("RFFT") != std::string_view::npos) {
    return (types[0] == DType::float64) != (types[1] == DType::complex128);
  }
  if (op.name.starts_with("FusedBatchNorm")) {
    return types[1] != (types[0] == DType::float64 ? DType::float64 : DType::float32);
  }
  return false;
}

/// Ops that passes make where the device has a kernel for them: the library has none for double.
bool is_fused_double(const OpDef& op, const TypeArgs& types) {
  return op.name.starts_with("_Fused") && types[0] == DType::float64;
}

/// Ops that a GPU does not compute, by the reason.
const std::map<std::string_view, std::vector<std::string_view>>& reasons() {
  static const std::map<std::string_view, std::vector<std::string_view>> all = {
      {"couples threads of the host, which wait for each other and for tensors",
       {"Barrier",
        "BarrierClose",
        "BarrierIncompleteSize",
        "BarrierInsertMany",
        "BarrierReadySize",
        "BarrierTakeMany",
        "FIFOQueue",
        "PaddingFIFOQueueV2",
        "PriorityQueueV2",
        "RandomShuffleQueueV2",
        "QueueClose",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueUpTo",
        "QueueEnqueue",
        "QueueEnqueueMany",
        "QueueIsClosed",
        "QueueSize",
        "Stage",
        "StageClear",
        "StageSize",
        "StagingArea",
        "Unstage"}},
      {"takes gradients of many replicas together, by way of the host",
       {"AccumulatorApplyGradient",
        "AccumulatorNumAccumulated",
        "AccumulatorSetGlobalStep",
        "AccumulatorTakeGradient",
        "AccumulatorTakeRanks",
        "ConditionalAccumulator",
        "SparseAccumulatorApplyGradient",
        "SparseAccumulatorTakeGradient",
        "SparseAccumulatorTakeRanks",
        "SparseConditionalAccumulator",
        "StalenessClock",
        "StalenessClockDropLate",
        "StalenessClockJoin",
        "StalenessClockLead",
        "StalenessClockLeave",
        "StalenessClockTick",
        "StalenessClockWait",
        "StalenessClockWatch",
        "TokenBarrier",
        "TokenBarrierAdvance",
        "TokenBarrierArrive",
        "TokenBarrierClose",
        "TokenBarrierCollect",
        "TokenBarrierDropMissing",
        "TokenBarrierHold",
        "TokenBarrierLeave",
        "TokenBarrierOpen",
        "TokenBarrierWait"}},
      {"changes a part of a variable, which no model that trains on a GPU does here yet", {"StridedSliceAssign"}},
      {"trains models of wide and sparse rows, which lie in the memory of hosts",
       {"ApplyAdadelta", "ApplyAdagrad", "ApplyCenteredRMSProp", "ApplyFtrl", "SparseApplyAdadelta",
        "SparseApplyAdagrad", "SparseApplyCenteredRMSProp", "SparseApplyFtrl"}},
      {"looks up keys in a table of the host",
       {"HashTable", "InitializeTable", "InitializeTableFromTextFile", "LookupTableExport", "LookupTableFind",
        "LookupTableImport", "LookupTableInsert", "LookupTableRemove", "LookupTableSize", "MutableHashTable"}},
      {"reads or writes files",
       {"FixedLengthRecordReaderV2", "IdentityReaderV2", "ImmutableConst", "MatchingFiles", "MergeV2Checkpoints",
        "ReadFile", "ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompletedV2", "ReaderReadUpToV2", "ReaderReadV2",
        "ReaderResetV2", "ReaderRestoreStateV2", "ReaderSerializeStateV2", "RestoreV2", "SaveV2", "TFRecordReaderV2",
        "TextLineReaderV2", "WholeFileReaderV2", "WriteFile"}},
      {"makes numbers of texts, or texts of numbers",
       {"AsString",
        "AudioSummaryV2",
        "DecodeBase64",
        "DecodeCSV",
        "DecodeJSONExample",
        "DecodeRaw",
        "EncodeBase64",
        "HistogramSummary",
        "ImageSummary",
        "MergeSummary",
        "ParseExample",
        "ParseSingleExample",
        "ParseSingleSequenceExample",
        "Print",
        "ReduceJoin",
        "ScalarSummary",
        "StringJoin",
        "StringLength",
        "StringSplit",
        "StringSplitV2",
        "StringToHashBucket",
        "StringToHashBucketFast",
        "StringToHashBucketStrong",
        "StringToNumber",
        "Substr",
        "TensorSummaryV2"}},
      {"takes complex numbers apart, which the host does so far", {"Angle", "Complex", "ComplexAbs", "Imag", "Real"}},
      {"chooses among classes, which the host does so far",
       {"AllCandidateSampler", "ComputeAccidentalHits", "FixedUnigramCandidateSampler", "InTopK",
        "LearnedUnigramCandidateSampler", "LogUniformCandidateSampler", "Multinomial",
        "ThreadUnsafeUnigramCandidateSampler", "TopKV2", "UniformCandidateSampler"}},
      {"goes through runs of rows, one after the other",
       {"Cumprod", "Cumsum", "LinearScan", "SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum",
        "SparseSegmentMean", "SparseSegmentMeanGrad", "SparseSegmentSqrtN", "SparseSegmentSqrtNGrad",
        "SparseSegmentSum", "SparseSegmentSumGrad"}},
      {"works on sparse tensors, which lie in the memory of hosts",
       {"SparseOrder", "SparsePositions", "SparseTensorDenseMatMul", "SparseToDense", "SparseUnique"}},
      {"sums over channels that it does not mix, which no model that trains on a GPU does here yet",
       {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput"}},
      {"moves elements, which no model that trains on a GPU does here yet",
       {"Bitcast", "GatherNd", "ReverseSequence", "ScatterNd", "StridedSlice", "StridedSliceGrad", "Tile"}},
      {"gives as many elements as it finds, and memory is allocated before",
       {"ListDiff", "Unique", "UniqueWithCounts", "Where"}},
      {"goes through sequences of unlike lengths, step by step",
       {"CTCBeamSearchDecoder", "CTCGreedyDecoder", "CTCLoss", "EditDistance"}},
      {"names the places of maxima, which no model that trains on a GPU does here yet", {"MaxPoolWithArgmax"}},
      {"prepares images, which the host does while a GPU trains",
       {"DrawBoundingBoxes", "NonMaxSuppression", "ResizeArea", "ResizeAreaGrad", "ResizeBicubic", "ResizeBicubicGrad",
        "ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad"}},
      {"keeps what a checkpoint saves on the host",
       {"AssignResourceState", "CountUpTo", "RandomStreamHandle", "ReadResourceState"}},
  };
  return all;
}

}  // namespace

TEST_CASE("a GPU has a kernel for every op and element type that the CPU has one for, or there is a reason", "[cuda]") {
  const KernelTable gpu = standard_cuda_kernels();
  std::map<std::string_view, std::string_view> reason_of;
  for (const auto& [reason, ops] : reasons()) {
    for (const std::string_view op : ops) reason_of[op] = reason;
  }
  int kernels = 0, of_strings = 0, of_fused_double = 0;
  std::map<std::string_view, int> left_out;
  std::set<std::string_view> ops, unused, missing;
  for (const auto& [op, reason] : reason_of) unused.insert(op);
  KernelTable("CPU", standard_cpu_kernels()).for_each([&](const KernelEntry& entry) {
    const KernelEntry* const found = gpu.find(entry.op->name);
    for (const TypeArgs& types : all_types(*entry.op)) {
      if (!entry.supports_types(types) || are_refused(*entry.op, types)) continue;
      if (found != nullptr && found->supports_types(types)) {
        ++kernels;
        ops.insert(entry.op->name);
      } else if (const auto reason = reason_of.find(entry.op->name); reason != reason_of.end()) {
        ++left_out[reason->second];
        unused.erase(entry.op->name);
      } else if (has_strings(types)) {
        ++of_strings;
      } else if (is_fused_double(*entry.op, types)) {
        ++of_fused_double;
      } else {
        missing.insert(entry.op->name);
      }
    }
  });
  std::cout << "count: " << kernels << " kernels of a GPU, of " << ops.size() << " ops; " << of_strings
            << " of strings are the host's; " << of_fused_double << " of double are not fused";
  for (const auto& [reason, count] : left_out) std::cout << "; " << count << ": " << reason;
  std::cout << '\n';
  for (const std::string_view op : missing) UNSCOPED_INFO(op);
  CHECK(missing.empty());
  for (const std::string_view op : unused) UNSCOPED_INFO(op);
  CHECK(unused.empty());
}
