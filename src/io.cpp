#include <dflow/io/csv.ipp>
#include <dflow/io/example.ipp>
#include <dflow/io/example_parser.ipp>
#include <dflow/io/gzip.ipp>
#include <dflow/io/idx.ipp>
#include <dflow/io/labelled_images.ipp>
#include <dflow/io/record_file.ipp>
#include <dflow/io/zlib_stream.ipp>
