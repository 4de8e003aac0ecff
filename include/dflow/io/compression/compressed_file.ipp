#pragma once

#include <dflow/base/files/file_kind.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/compression/compressed_file.hpp>
#include <dflow/io/compression/gzip.hpp>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

class InflatingSource final : public ByteSource {
 public:
  InflatingSource(std::unique_ptr<ByteSource> compressed, CompressionFormat format)
      : compressed_(std::move(compressed)), format_(format), inflater_(format), buffer_(std::size_t{1} << 16) {}

  std::size_t read(std::span<std::byte> into) override {
    if (is_broken_) fail("an earlier read failed");
    is_broken_ = true;
    std::size_t done = 0;
    while (done < into.size()) {
      if (packed_.empty() && !refill() && (is_at_end_ || is_untouched_)) break;
      if (is_at_end_) {
        if (format_ != CompressionFormat::gzip) fail("bytes follow its end");
        inflater_.reset();
      }
      const Inflater::Step step = inflater_.step(packed_, into.subspan(done));
      packed_ = packed_.subspan(step.taken);
      done += step.made;
      is_at_end_ = step.is_end;
      if (!step.damage.empty()) fail(step.damage);
      if (step.is_stuck()) fail("it is cut short");
    }
    position_ += done;
    is_broken_ = false;
    return done;
  }

  std::uint64_t position() const override { return position_; }

  void seek(std::uint64_t position) override {
    if (position < position_ || is_broken_) {
      compressed_->seek(0);
      inflater_.reset();
      packed_ = {};
      position_ = 0;
      is_at_end_ = is_broken_ = false;
      is_untouched_ = true;
    }
    std::vector<std::byte> skipped(std::min<std::uint64_t>(position - position_, std::uint64_t{1} << 16));
    while (position_ < position) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(position - position_, skipped.size()));
      if (read(std::span(skipped).first(wanted)) < wanted) return;
    }
  }

 private:
  bool refill() {
    packed_ = std::span(buffer_).first(compressed_->read(buffer_));
    if (!packed_.empty()) is_untouched_ = false;
    return !packed_.empty();
  }

  [[noreturn]] void fail(std::string_view what) {
    constexpr std::string_view names[] = {"deflated", "zlib", "gzip"};
    Status damage =
        Status::data_loss(str_cat("the ", names[static_cast<std::size_t>(format_)], " stream is damaged before offset ",
                                  compressed_->position() - packed_.size(), ": ", what));
    if (position_ == 0) damage = with_kind_of_file(damage, *compressed_);
    throw_error(std::move(damage));
  }

  std::unique_ptr<ByteSource> compressed_;
  CompressionFormat format_;
  Inflater inflater_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> packed_;  ///< what of the buffer has not been unpacked yet
  std::uint64_t position_ = 0;
  bool is_at_end_ = false;    ///< of a stream: another member may follow
  bool is_untouched_ = true;  ///< nothing has been unpacked yet
  bool is_broken_ = false;    ///< a read ended in an error
};

}  // namespace detail

std::unique_ptr<ByteSource> inflating_source(std::unique_ptr<ByteSource> compressed, CompressionFormat format) {
  return std::make_unique<detail::InflatingSource>(std::move(compressed), format);
}

std::unique_ptr<ByteSource> open_maybe_gzip(FileSystem& files, const std::string& path) {
  auto source = std::make_unique<FileSource>(files.open_for_reading(path));
  const std::span<const std::byte> first = source->bring_to_hand(2);
  if (!is_gzip({reinterpret_cast<const char*>(first.data()), first.size()})) return source;
  return inflating_source(std::move(source), CompressionFormat::gzip);
}

DeflatingFile::DeflatingFile(std::unique_ptr<WritableFile> compressed, CompressionFormat format, int level)
    : compressed_(std::move(compressed)), deflater_(format, level) {}

DeflatingFile::~DeflatingFile() = default;

void DeflatingFile::run(std::span<const std::byte> bytes, Deflater::Flush flush) {
  deflater_.run(bytes, flush, [this](std::span<const std::byte> packed) { compressed_->append(packed); });
}

void DeflatingFile::append(std::span<const std::byte> bytes) { run(bytes, Deflater::Flush::none); }
void DeflatingFile::flush() { run({}, Deflater::Flush::sync); }
void DeflatingFile::finish() { run({}, Deflater::Flush::finish); }
void DeflatingFile::sync() {
  flush();
  compressed_->sync();
}

}  // namespace dflow
