#pragma once

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/data/files.hpp>
#include <dflow/data/from.hpp>
#include <dflow/io/labelled_images.hpp>

#include <memory>
#include <utility>

namespace dflow::data {

Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(FileSystem& files, const std::string& directory,
                                                                  std::string_view part) {
  const LabelledImages read = read_mnist(files, directory, part);
  return from_tensors(read.images, read.labels);
}
Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(const std::string& directory, std::string_view part) {
  PosixFileSystem files;
  return from_idx(files, directory, part);
}

Dataset<Tensor<float>> from_csv(FileSystem& files, const std::string& path, const CsvOptions& options) {
  return from_tensors(read_csv(files, path, options));
}
Dataset<Tensor<float>> from_csv(const std::string& path, const CsvOptions& options) {
  PosixFileSystem files;
  return from_csv(files, path, options);
}

namespace detail {

class RecordSource final : public Recipe {
 public:
  RecordSource(std::shared_ptr<FileSystem> files, std::vector<std::string> paths, const RecordReaderOptions& options)
      : files_(std::move(files)), paths_(std::move(paths)), options_(options) {}

  std::unique_ptr<Stream> open(std::uint64_t, ReplayLimit& limit) const override {
    return std::make_unique<Pass>(*this, limit);
  }
  std::string describe() const override {
    std::string names;
    for (const std::string& path : paths_) names += path.substr(path.rfind('/') + 1) + '/';
    const std::string_view compression =
        attr_enum_names(RecordCompression())[static_cast<std::size_t>(options_.compression)];
    return str_cat("records(", paths_.size(), " files, ", crc32c(names), compression.empty() ? "" : ", ", compression,
                   ")");
  }

 private:
  class Pass final : public Stream {
   public:
    Pass(const RecordSource& source, ReplayLimit& limit) : source_(source), limit_(limit) {}

    bool next(Item& item) override {
      std::string record;
      if (!read(record)) return false;
      item = Item::of(std::move(record));
      return true;
    }
    std::uint64_t skip(std::uint64_t n) override {
      std::string record;
      std::uint64_t passed = 0;
      while (passed < n && read(record)) ++passed;
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
      if (is_there && offset > 0 && source_.options_.compression == RecordCompression::none) {
        is_there = offset <= source_.files_->file_size(source_.paths_[file]);
      }
      if (!is_there)
        throw_error(Status::data_loss(str_cat("no record of these files begins at ", offset, " in file ", file)));
      file_ = file;
      offset_ = offset;
    }

   private:
    bool read(std::string& record) {
      limit_.count();
      for (; file_ < source_.paths_.size(); ++file_) {
        if (reader_ == nullptr) {
          reader_ = std::make_unique<RecordReader>(*source_.files_, source_.paths_[file_], source_.options_);
          reader_->seek(offset_);
        }
        if (reader_->next(record)) return true;
        reader_ = nullptr;
        offset_ = 0;
      }
      return false;
    }

    const RecordSource& source_;
    ReplayLimit& limit_;
    std::size_t file_ = 0;      ///< the one that is read; as many as there are at the end
    std::uint64_t offset_ = 0;  ///< in it, until it is opened
    std::unique_ptr<RecordReader> reader_;
  };

  std::shared_ptr<FileSystem> files_;
  std::vector<std::string> paths_;
  RecordReaderOptions options_;
};

Dataset<std::string> record_dataset(std::shared_ptr<FileSystem> files, std::vector<std::string> paths,
                                    const RecordReaderOptions& options) {
  if (paths.empty()) throw_error(Status::invalid_argument("from_records: there are no paths"));
  return Dataset<std::string>(std::make_shared<RecordSource>(std::move(files), std::move(paths), options));
}

}  // namespace detail

Dataset<std::string> from_records(FileSystem& files, std::vector<std::string> paths,
                                  const RecordReaderOptions& options) {
  return detail::record_dataset({std::shared_ptr<void>(), &files}, std::move(paths), options);
}
Dataset<std::string> from_records(std::vector<std::string> paths, const RecordReaderOptions& options) {
  return detail::record_dataset(std::make_shared<PosixFileSystem>(), std::move(paths), options);
}

}  // namespace dflow::data
