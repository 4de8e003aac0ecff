#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/records/line_file.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/state/readers/work_unit.hpp>

namespace dflow {

std::string_view reader_format_name(ReaderFormat format) noexcept {
  switch (format) {
    case ReaderFormat::whole_file:
      return "WholeFileReader";
    case ReaderFormat::text_line:
      return "TextLineReader";
    case ReaderFormat::fixed_length:
      return "FixedLengthRecordReader";
    case ReaderFormat::tf_record:
      return "TFRecordReader";
    case ReaderFormat::identity:
      break;
  }
  return "IdentityReader";
}

WorkUnit::~WorkUnit() = default;

namespace detail {

/// One record: a file, or the work itself.
class WholeWork final : public WorkUnit {
 public:
  WholeWork(FileSystem* files, const std::string& work) : files_(files), work_(work) {}

  Next next(std::string& key, std::string& value) override {
    if (is_read_) return Next::end;
    value = files_ == nullptr ? work_ : read_regular_file(*files_, work_);
    key = work_;
    is_read_ = true;
    return Next::last_record;
  }
  bool has_next_at_hand() const override { return files_ == nullptr || is_read_; }
  WorkPlace place() const override { return {0, is_read_ ? 1u : 0u}; }
  void go_to(const WorkPlace& place) override { is_read_ = place.number != 0; }

 private:
  FileSystem* const files_;  ///< null: the work is the record
  const std::string work_;
  bool is_read_ = false;
};

class LinesOfFile final : public WorkUnit {
 public:
  LinesOfFile(FileSystem& files, const std::string& work, std::int64_t skipped)
      : lines_(files, work), num_skipped_(static_cast<std::uint64_t>(skipped)) {}

  Next next(std::string& key, std::string& value) override {
    std::string_view line;
    do {
      if (!lines_.next(line)) return Next::end;
      ++number_;
    } while (number_ <= num_skipped_);
    key = str_cat(lines_.path(), ":", number_);
    value = line;
    return Next::record;
  }
  bool has_next_at_hand() const override { return number_ >= num_skipped_ && lines_.has_next_at_hand(); }
  WorkPlace place() const override { return {lines_.tell(), number_}; }
  void go_to(const WorkPlace& place) override {
    lines_.seek(place.offset);
    number_ = place.number;
  }

 private:
  LineReader lines_;
  const std::uint64_t num_skipped_;
  std::uint64_t number_ = 0;  ///< of the line before, from 1 on
};

class FixedRecordsOfFile final : public WorkUnit {
 public:
  FixedRecordsOfFile(FileSystem& files, const std::string& work, const FixedRecordFormat& format)
      : records_(files, work, format) {}

  Next next(std::string& key, std::string& value) override {
    const std::uint64_t number = records_.number();
    if (!records_.next(value)) return Next::end;
    key = str_cat(records_.path(), ":", number);
    return Next::record;
  }
  bool has_next_at_hand() const override { return records_.has_next_at_hand(); }
  WorkPlace place() const override { return {0, records_.number()}; }
  void go_to(const WorkPlace& place) override { records_.seek(place.number); }

 private:
  FixedRecordReader records_;
};

class RecordsOfFile final : public WorkUnit {
 public:
  RecordsOfFile(FileSystem& files, const std::string& work, RecordCompression compression)
      : records_(files, work, {.compression = compression}) {}

  Next next(std::string& key, std::string& value) override {
    const std::uint64_t offset = records_.tell();
    if (!records_.next(value)) return Next::end;
    key = str_cat(records_.path(), ":", offset);
    return Next::record;
  }
  bool has_next_at_hand() const override { return records_.has_next_at_hand(); }
  WorkPlace place() const override { return {records_.tell(), 0}; }
  void go_to(const WorkPlace& place) override { records_.seek(place.offset); }

 private:
  RecordReader records_;
};

}  // namespace detail

std::unique_ptr<WorkUnit> open_work(FileSystem& files, const ReaderKind& kind, const std::string& work) {
  switch (kind.format) {
    case ReaderFormat::whole_file:
      return std::make_unique<detail::WholeWork>(&files, work);
    case ReaderFormat::text_line:
      return std::make_unique<detail::LinesOfFile>(files, work, kind.skip_header_lines);
    case ReaderFormat::fixed_length:
      return std::make_unique<detail::FixedRecordsOfFile>(files, work, kind.fixed);
    case ReaderFormat::tf_record:
      return std::make_unique<detail::RecordsOfFile>(files, work, kind.compression);
    case ReaderFormat::identity:
      break;
  }
  return std::make_unique<detail::WholeWork>(nullptr, work);
}

}  // namespace dflow
