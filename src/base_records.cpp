#include <dflow/base/records/fixed_record_file.ipp>
#include <dflow/base/records/line_file.ipp>
#include <dflow/base/records/record_file.ipp>
#include <dflow/base/records/zlib_stream.ipp>
