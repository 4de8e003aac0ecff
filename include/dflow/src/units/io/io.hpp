#pragma once

/// Bodies of file formats: needed by the families checkpoint, io, parsing and summary, and by train, data and trace.

#include <dflow/io/checkpoint/own/checkpoint_index.ipp>
#include <dflow/io/checkpoint/own/checkpoint_reader.ipp>
#include <dflow/io/checkpoint/own/checkpoint_writer.ipp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.ipp>
#include <dflow/io/checkpoint/parts/sorted_table.ipp>
#include <dflow/io/checkpoint/parts/tensor_slices.ipp>
#include <dflow/io/checkpoint/saved_tensors.ipp>
#include <dflow/io/checkpoint/tensorflow/saved_slices.ipp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.ipp>
#include <dflow/io/compression/deflate.ipp>
#include <dflow/io/compression/gzip.ipp>
#include <dflow/io/compression/snappy.ipp>
#include <dflow/io/compression/zlib_stream.ipp>
#include <dflow/io/csv.ipp>
#include <dflow/io/idx.ipp>
#include <dflow/io/labelled_images.ipp>
#include <dflow/io/npy.ipp>
#include <dflow/io/npz.ipp>
#include <dflow/io/proto/proto_reader.ipp>
#include <dflow/io/proto/proto_writer.ipp>
#include <dflow/io/records/csv_record.ipp>
#include <dflow/io/records/example.ipp>
#include <dflow/io/records/example_json.ipp>
#include <dflow/io/records/example_parser.ipp>
#include <dflow/io/records/fixed_record_file.ipp>
#include <dflow/io/records/line_file.ipp>
#include <dflow/io/records/record_file.ipp>
#include <dflow/io/safetensors.ipp>
#include <dflow/io/summary/histogram.ipp>
#include <dflow/io/summary/png.ipp>
#include <dflow/io/summary/summary.ipp>
#include <dflow/io/summary/tensor_proto.ipp>
#include <dflow/io/summary/wav.ipp>
#include <dflow/io/zip.ipp>
