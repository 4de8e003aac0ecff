#include <dflow/base/files/file_kind.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>

#include <string>
#include <string_view>
#include <utility>

using namespace std::string_view_literals;
using dflow::Code;
using dflow::kind_of_file;
using dflow::Status;

TEST_CASE("a file is known by its first bytes, where a reader of another format may be given it") {
  for (const auto& [start, kind] :
       {std::pair("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12\n"sv, "Git LFS"sv),
        std::pair("<!DOCTYPE html><html>"sv, "web page"sv), std::pair("\r\n  <!doctype HTML>"sv, "web page"sv),
        std::pair("\xef\xbb\xbf<HTML lang=en>"sv, "web page"sv),
        std::pair("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"sv, "XML"sv),
        std::pair("PK\3\4\x14\0"sv, "ZIP archive"sv), std::pair("\x89HDF\r\n\x1a\n\0"sv, "HDF5"sv),
        std::pair("\x1f\x8b\x08\0"sv, "gzip"sv), std::pair("\x80\2\x8a\nl"sv, "pickle"sv),
        std::pair("\x80\4\x95\1"sv, "pickle"sv)}) {
    INFO(start);
    CHECK(contains(kind_of_file(start), kind));
  }
  for (const std::string_view start : {""sv, " "sv, "\n"sv, "version 2"sv, "<"sv, "<htm"sv, "PK"sv, " PK\3\4"sv,
                                       "\x1f\x8b"sv, "\x80\2\0\0"sv, "\x93NUMPY\1\0"sv, "\x10\0\0\0\0\0\0\0{"sv}) {
    CHECK(kind_of_file(start).empty());
  }
}

TEST_CASE("the error of a reader says what the file is, and keeps its code") {
  const Status error = Status::invalid_argument("no graph");
  CHECK(dflow::with_kind_of_file(error, "what it should be"sv) == error);
  CHECK(dflow::with_kind_of_file(Status(), "<html>"sv).ok());
  const Status told = dflow::with_kind_of_file(error, "<html>"sv);
  CHECK(told.code() == Code::invalid_argument);
  CHECK(mentions(told, "the file is a web page"));
  CHECK_FALSE(mentions(told, "no graph"));

  dflow::MemoryFileSystem files;
  files.write_file_atomically("/page", "<html>"sv);
  CHECK(dflow::with_kind_of_file(error, *files.open_for_reading("/page")) == told);
  dflow::FileSource source(files.open_for_reading("/page"));
  source.seek(6);
  CHECK(dflow::with_kind_of_file(error, source) == told);
}
