#pragma once

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/data/files.hpp>
#include <dflow/io/compression/compressed_file.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/labelled_images.hpp>
#include <dflow/io/records/line_file.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace dflow::data {

Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(FileSystem& files, const std::string& directory,
                                                                  std::string_view part) {
  const LabelledImages read = read_mnist(files, directory, part);
  return from_tensors(read.images, read.labels);
}
Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(const std::string& directory, std::string_view part) {
  return from_idx(*machine_files(), directory, part);
}

Dataset<Tensor<float>> from_csv(FileSystem& files, const std::string& path, const CsvOptions& options) {
  return from_tensors(read_csv(files, path, options));
}
Dataset<Tensor<float>> from_csv(const std::string& path, const CsvOptions& options) {
  return from_csv(*machine_files(), path, options);
}

namespace detail {

/// Record files, for `FilesSource`.
struct RecordFiles {
  RecordReaderOptions options;

  using Reader = RecordReader;
  std::unique_ptr<Reader> open(FileSystem& files, const std::string& path) const {
    return std::make_unique<Reader>(files, path, options);
  }
  /// False if no element of the file begins there; true if only reading the file could tell.
  bool may_hold(FileSystem& files, const std::string& path, std::uint64_t offset) const {
    return options.compression != RecordCompression::none || offset <= files.file_size(path);
  }
  std::string describe(std::string_view which) const {
    const std::string_view compression =
        attr_enum_names(RecordCompression())[static_cast<std::size_t>(options.compression)];
    return str_cat("records(", which, compression.empty() ? "" : ", ", compression, ")");
  }
};

/// The lines of one text file below its header.
class TextLines {
 public:
  TextLines(FileSystem& files, const std::string& path, std::uint64_t num_skipped)
      : lines_(open_maybe_gzip(files, path), path), num_skipped_(num_skipped) {}

  bool next(std::string& line) {
    std::string_view next;
    for (std::uint64_t i = 0; lines_.tell() == header_end_ && i < num_skipped_; ++i) {
      if (!lines_.next(next)) return false;
      header_end_ = lines_.tell();
    }
    if (!lines_.next(next)) return false;
    line = next;
    return true;
  }
  std::uint64_t tell() const noexcept { return lines_.tell(); }
  void seek(std::uint64_t offset) noexcept { lines_.seek(offset); }
  /// After an error there is no next line.
  bool pass_over() const noexcept { return false; }

 private:
  LineReader lines_;
  std::uint64_t num_skipped_;
  std::uint64_t header_end_ = 0;
};

/// Text files, for `FilesSource`.
struct TextFiles {
  TextLineOptions options;

  using Reader = TextLines;
  std::unique_ptr<Reader> open(FileSystem& files, const std::string& path) const {
    return std::make_unique<Reader>(files, path, options.skip_header_lines);
  }
  bool may_hold(FileSystem& files, const std::string& path, std::uint64_t offset) const {
    std::array<std::byte, 2> first{};
    const std::size_t size = files.open_for_reading(path)->read_at(0, first);
    return is_gzip({reinterpret_cast<const char*>(first.data()), size}) || offset <= files.file_size(path);
  }
  std::string describe(std::string_view which) const {
    const std::uint64_t skipped = options.skip_header_lines;
    return str_cat("lines(", which, skipped == 0 ? "" : str_cat(", from line ", skipped + 1), ")");
  }
};

/// The strings of files, one file after the other. The reader of a file gives them and knows their offsets.
template <class Files>
class FilesSource final : public Recipe {
 public:
  FilesSource(std::shared_ptr<FileSystem> system, std::vector<std::string> paths, Files files)
      : system_(std::move(system)), paths_(std::move(paths)), files_(files) {}

  std::unique_ptr<Stream> open(const PassContext& context) const override {
    return std::make_unique<Pass>(*this, context);
  }
  std::string describe() const override {
    std::string names;
    for (const std::string& path : paths_) names += path.substr(path.rfind('/') + 1) + '/';
    return files_.describe(str_cat(paths_.size(), " files, ", crc32c(names)));
  }

 private:
  class Pass final : public Stream {
   public:
    Pass(const FilesSource& source, const PassContext& context) : source_(source), context_(context) {}

    bool next(Item& item) override {
      std::string element;
      Item failure;
      if (!read(element, failure)) return false;
      item = failure.is_empty() ? Item::of(std::move(element)) : std::move(failure);
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      std::string element;
      Item failure;
      std::uint64_t passed = 0;
      while (passed < n && read(element, failure)) ++passed;
      return passed;
    }
    void save(ByteWriter& out) const override {
      out.varint(file_);
      out.varint(reader_ == nullptr ? offset_ : reader_->tell());
    }
    void restore(ByteReader& in) override {
      const std::uint64_t file = in.varint(), offset = in.varint();
      const std::size_t count = source_.paths_.size();
      bool is_there = file < count || (file == count && offset == 0);
      if (is_there && offset > 0) is_there = source_.files_.may_hold(*source_.system_, source_.paths_[file], offset);
      if (!is_there)
        throw_error(Status::data_loss(str_cat("no element of these files begins at ", offset, " in file ", file)));
      file_ = file;
      offset_ = offset;
    }

   private:
    /// The next element, or the failure in its place; false at the end.
    bool read(std::string& element, Item& failure) {
      context_.limit.count();
      bool has_element = false;
      if (context_.make(failure, [&] { has_element = read_next(element); })) return has_element;
      go_on();
      return true;
    }
    bool read_next(std::string& element) {
      for (; file_ < source_.paths_.size(); next_file()) {
        if (reader_ == nullptr) {
          reader_ = source_.files_.open(*source_.system_, source_.paths_[file_]);
          reader_->seek(offset_);
        }
        if (reader_->next(element)) return true;
      }
      return false;
    }
    /// Goes past what could not be read.
    void go_on() {
      bool is_past = false;
      try {
        is_past = reader_ != nullptr && reader_->pass_over();
      } catch (...) {  // nothing more of this file can be read
      }
      if (!is_past) next_file();
    }
    void next_file() {
      ++file_;
      reader_ = nullptr;
      offset_ = 0;
    }

    const FilesSource& source_;
    PassContext context_;
    std::size_t file_ = 0;      ///< the one that is read; as many as there are at the end
    std::uint64_t offset_ = 0;  ///< in it, until it is opened
    std::unique_ptr<typename Files::Reader> reader_;
  };

  std::shared_ptr<FileSystem> system_;
  std::vector<std::string> paths_;
  Files files_;
};

template <class Files>
Dataset<std::string> strings_of_files(std::string_view what, std::shared_ptr<FileSystem> system,
                                      std::vector<std::string> paths, Files files) {
  if (system == nullptr) throw_error(Status::invalid_argument(str_cat(what, ": the file system is null")));
  if (paths.empty()) throw_error(Status::invalid_argument(str_cat(what, ": there are no paths")));
  return Dataset<std::string>(
      std::make_shared<FilesSource<Files>>(std::move(system), std::move(paths), std::move(files)));
}

/// A file system that somebody else keeps alive.
std::shared_ptr<FileSystem> lent(FileSystem& files) { return {std::shared_ptr<void>(), &files}; }

}  // namespace detail

Dataset<std::string> from_records(std::shared_ptr<FileSystem> files, std::vector<std::string> paths,
                                  const RecordReaderOptions& options) {
  return detail::strings_of_files("from_records", std::move(files), std::move(paths), detail::RecordFiles{options});
}
Dataset<std::string> from_records(FileSystem& files, std::vector<std::string> paths,
                                  const RecordReaderOptions& options) {
  return from_records(detail::lent(files), std::move(paths), options);
}
Dataset<std::string> from_records(std::vector<std::string> paths, const RecordReaderOptions& options) {
  return from_records(machine_files(), std::move(paths), options);
}

Dataset<std::string> from_text_lines(std::shared_ptr<FileSystem> files, std::vector<std::string> paths,
                                     const TextLineOptions& options) {
  return detail::strings_of_files("from_text_lines", std::move(files), std::move(paths), detail::TextFiles{options});
}
Dataset<std::string> from_text_lines(FileSystem& files, std::vector<std::string> paths,
                                     const TextLineOptions& options) {
  return from_text_lines(detail::lent(files), std::move(paths), options);
}
Dataset<std::string> from_text_lines(std::vector<std::string> paths, const TextLineOptions& options) {
  return from_text_lines(machine_files(), std::move(paths), options);
}

}  // namespace dflow::data
