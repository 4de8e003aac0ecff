#pragma once

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/data/iterator.hpp>
#include <dflow/data/read_position.hpp>

#include <limits>

namespace dflow::data {

namespace detail {

// A state: magic, the name of the dataset, epoch, position, the stream's own state, and the masked CRC-32C of all
// before.
inline constexpr std::string_view state_magic = "dflow iterator 2\n";
inline constexpr std::size_t checksum_bytes = 4;

/// The bytes between the magic and the checksum.
std::string_view checked_content(std::string_view state) {
  const bool is_whole = state.size() >= state_magic.size() + checksum_bytes && state.starts_with(state_magic);
  if (is_whole) {
    const std::string_view content = state.substr(0, state.size() - checksum_bytes);
    ByteReader checksum(state.substr(content.size()));
    if (checksum.u32() == mask_crc32c(crc32c(content))) return content.substr(state_magic.size());
  }
  throw_error(Status::data_loss(str_cat("an iterator's state of ", state.size(), " bytes is ",
                                        is_whole ? "damaged: its checksum is another" : "cut short, or none")));
}

}  // namespace detail

AnyIterator::AnyIterator(SharedRecipe recipe, std::uint64_t epoch)
    : recipe_(std::move(recipe)), epoch_(epoch), stream_(recipe_->open({epoch, *limit_})) {}

AnyIterator& AnyIterator::operator=(AnyIterator&& other) noexcept {
  stream_ = std::move(other.stream_);  // destroys the old stream before the old recipe and limit that it refers to
  recipe_ = std::move(other.recipe_);
  limit_ = std::move(other.limit_);
  restore_limit_ = other.restore_limit_;
  epoch_ = other.epoch_;
  position_ = other.position_;
  failed_ = std::move(other.failed_);
  return *this;
}

const Recipe& AnyIterator::recipe() const {
  if (!recipe_) throw_error(Status::failed_precondition("data: this iterator was moved from"));
  return *recipe_;
}

bool AnyIterator::next(Item& item) {
  if (failed_) std::rethrow_exception(failed_);
  static_cast<void>(recipe());
  try {
    if (!stream_->next(item)) return false;
  } catch (...) {
    failed_ = std::current_exception();
    throw;
  }
  ++position_;
  return true;
}

bool AnyIterator::next_own(Item& item) {
  if (!next(item)) return false;
  try {
    item.unshare();
  } catch (...) {
    failed_ = std::current_exception();
    throw;
  }
  return true;
}

void AnyIterator::next_epoch() {
  static_cast<void>(recipe());
  stream_.reset();  // its threads end before others start
  ++epoch_;
  position_ = 0;
  failed_ = nullptr;
  try {
    stream_ = recipe_->open({epoch_, *limit_});
  } catch (...) {
    failed_ = std::current_exception();
    throw;
  }
}

std::optional<std::int64_t> AnyIterator::size() const {
  const std::optional<std::uint64_t> size = recipe().size();
  if (!size || *size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(*size);
}

std::string AnyIterator::state() const {
  if (failed_) throw_error(Status::failed_precondition("data: an iterator that has failed has no state to save"));
  const std::string name = recipe().describe();
  std::string state(detail::state_magic);
  ByteWriter out(state);
  out.string(name);
  out.varint(epoch_);
  out.varint(position_);
  stream_->save(out);
  out.u32(mask_crc32c(crc32c(state)));
  return state;
}

AnyIterator AnyIterator::restored(std::string_view state) const {
  ByteReader in(detail::checked_content(state));
  try {
    const std::string_view name = in.string();
    if (const std::string own = recipe().describe(); name != own) {
      throw_error(Status::invalid_argument(
          str_cat("data: this is the state of an iterator of '", name, "', not of '", own, "'")));
    }
    const std::uint64_t epoch = read_position(in);
    const std::uint64_t position = read_position(in);
    AnyIterator restored(recipe_, epoch);
    restored.restore_limit_ = restore_limit_;
    restored.limit_->begin(restore_limit_);
    restored.stream_->restore(in);
    restored.limit_->end();
    in.expect_end();
    restored.position_ = position;
    return restored;
  } catch (const Error& error) {
    if (error.code() != Code::out_of_range) throw;
    throw_error(Status::data_loss(str_cat("an iterator's state is damaged: ", error.status().message())));
  }
}

void AnyIterator::restore(std::string_view state) { *this = restored(state); }

}  // namespace dflow::data
